"""The model that all serve: it takes the time of a GPU, so that no server has more processor than another.

With ``WORK=cpu`` it takes as much time of a processor, and lets other threads run, as numerical libraries do.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any

BASE, EACH = 0.010, 0.003
"""Seconds that a batch takes, and each item of it."""

MOST = 32
"""The most items of a batch."""

_CHUNK = bytes(100_000)


def predict_batch_fn(batch: list[Any], model: Any = None) -> list[Any]:  # noqa: ARG001 - a hook has a model
    """Return the items, after a while."""
    seconds = BASE + EACH * len(batch)
    if os.environ.get("WORK") == "cpu":
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            hashlib.sha256(_CHUNK)
    else:
        time.sleep(seconds)
    return batch
