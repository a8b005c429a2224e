"""Outputs as services handle them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forecastle.errors import BadOutput
from forecastle.runtimes.service.arrays import plain


def top_probability(data: Any, labels: Sequence[str], top: int = 5) -> list[dict[str, Any]]:
    """Name the best labels of an output's first row, best first; of equal scores the earlier label.

    ``data`` is one row of scores, or rows of them, perhaps with axes of size 1 behind. Each entry is
    ``{"probability": score, "class": label}``; where there are fewer labels than ``top``, all are named.

    Raises:
        BadOutput: there are not as many scores as labels.
    """
    scores = plain(data)
    row = np.squeeze(scores[0] if scores.ndim > 1 and len(scores) else scores)
    if row.ndim > 1 or row.size != len(labels):
        raise BadOutput(
            f"an output of the shape {scores.shape} has not one score for each of the {len(labels)} labels; expected "
            f"(1, {len(labels)})"
        )
    row = row.reshape(-1)
    best = np.argsort(-row.astype(np.float64), kind="stable")[:top]
    return [{"probability": float(row[index]), "class": labels[index]} for index in best]
