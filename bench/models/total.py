"""W1: the sum of a JSON list. The model costs nothing, so what is measured is the server."""

from __future__ import annotations

from typing import Any

import msgspec

_numbers = msgspec.json.Decoder(list[float]).decode


def input_fn(input_data: bytes, content_type: str) -> list[float]:  # noqa: ARG001
    """Read the list."""
    return _numbers(input_data)


def predict_batch_fn(batch: list[list[float]], model: Any) -> list[float]:  # noqa: ARG001
    """Sum each list."""
    return [sum(numbers) for numbers in batch]


def output_fn(prediction: float, accept: Any) -> tuple[bytes, str]:  # noqa: ARG001
    """Write the sum."""
    return b"%g" % prediction, "application/json"
