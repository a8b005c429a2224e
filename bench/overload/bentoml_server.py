"""BentoML. ``bentoml serve bentoml_server:Model``; run in an environment of its own."""

import os

import bentoml  # type: ignore[import-not-found,unused-ignore]
from cost import MOST, predict_batch_fn  # type: ignore[import-not-found,unused-ignore]

MOST_MS = int(os.environ["SLO_MS"])


@bentoml.service(traffic={"timeout": 30})  # type: ignore[misc,unused-ignore]
class Model:
    """The model, in batches."""

    @bentoml.api(batchable=True, max_batch_size=MOST, max_latency_ms=MOST_MS)  # type: ignore[untyped-decorator,unused-ignore]
    def predict(self, input: list[int]) -> list[int]:  # noqa: A002 - the name in its JSON
        """Predict."""
        output: list[int] = predict_batch_fn(list(input))
        return output
