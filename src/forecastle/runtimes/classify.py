"""From a classifier's scores to the labels a reader understands."""

from __future__ import annotations

from typing import Any

import numpy as np

TOP = 5


def top_five(scores: np.ndarray[Any, Any], labels: list[str]) -> list[list[dict[str, Any]]]:
    """Name the five best labels of each row, best first; of equal scores the earlier label.

    ``scores`` has shape (rows, labels). Each entry is ``{"class": label, "probability": score}``; the score is the
    model's own, a NaN comes last, and a model of fewer than five labels gives as many as it has.
    """
    order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
    best = np.take_along_axis(scores, order, axis=1)
    return [
        [{"class": labels[index], "probability": score} for index, score in zip(row, row_scores, strict=True)]
        for row, row_scores in zip(order.tolist(), best.tolist(), strict=True)
    ]


def classifies(scores: np.ndarray[Any, Any], labels: list[str]) -> np.ndarray[Any, Any] | None:
    """Return an output as scores of shape (rows, labels), or ``None`` if it is something else.

    Axes of size 1 behind the labels' axis are dropped: some networks end in a 1 x 1 picture.
    """
    if scores.ndim < 2 or scores.dtype.kind != "f" or scores.shape[1] != len(labels):
        return None
    if any(size != 1 for size in scores.shape[2:]):
        return None
    rows: np.ndarray[Any, Any] = scores.reshape(scores.shape[:2])
    return rows
