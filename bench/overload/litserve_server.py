"""LitServe. ``python litserve_server.py PORT``; run in an environment of its own."""

from __future__ import annotations

import sys
from typing import Any

import litserve  # type: ignore[import-not-found,unused-ignore]
from cost import MOST, predict_batch_fn  # type: ignore[import-not-found,unused-ignore]


class Api(litserve.LitAPI):  # type: ignore[misc,unused-ignore]
    """The model, in batches."""

    def setup(self, device: str) -> None:
        """Load nothing."""

    def decode_request(self, request):  # type: ignore[no-untyped-def] # a type would be one of FastAPI's
        """Return the input."""
        return request["input"]

    def batch(self, inputs: list[Any]) -> list[Any]:
        """Return the inputs."""
        return list(inputs)

    def predict(self, batch: list[Any]) -> list[Any]:
        """Predict."""
        output: list[Any] = predict_batch_fn(batch)
        return output

    def unbatch(self, output: list[Any]) -> list[Any]:
        """Return the outputs."""
        return output

    def encode_response(self, output: Any) -> dict[str, Any]:
        """Return an output."""
        return {"output": output}


if __name__ == "__main__":
    server = litserve.LitServer(Api(max_batch_size=MOST, batch_timeout=0.002), accelerator="cpu", fast_queue=True)
    server.run(
        host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="warning", access_log=False
    )
