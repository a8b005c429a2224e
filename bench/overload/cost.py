"""The model that all serve: it takes the time of a GPU, so that no server has more processor than another."""

from __future__ import annotations

import time
from typing import Any

BASE, EACH = 0.010, 0.003
"""Seconds that a batch takes, and each item of it."""

MOST = 32
"""The most items of a batch."""


def predict_batch_fn(batch: list[Any], model: Any = None) -> list[Any]:  # noqa: ARG001 - a hook has a model
    """Return the items, after a while."""
    time.sleep(BASE + EACH * len(batch))
    return batch
