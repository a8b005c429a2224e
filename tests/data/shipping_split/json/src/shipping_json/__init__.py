"""The half of the shipping forecast that knows JSON and nothing of the weather."""

from __future__ import annotations

import orjson

import inference_server


@inference_server.plugin_hook
def input_fn(input_data: bytes, content_type: str) -> str:
    location: str = orjson.loads(input_data)["location"]
    return location


@inference_server.plugin_hook
def output_fn(prediction: dict[str, str], accept: inference_server.MIMEAccept) -> tuple[bytes, str]:
    assert accept.accept_json
    return orjson.dumps(prediction), "application/json"
