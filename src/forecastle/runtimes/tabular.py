"""Models over rows of features, as trees are: one input ``X``, one output ``prediction``, missing values allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forecastle.models.signature import Signature, Tensor
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.convert import Array

INPUT, PREDICTION = "X", "prediction"


def tabular(predict: Callable[[Array], Any], features: int, dtype: str, columns: list[str] | None) -> TensorModel:
    """Return the model whose ``predict`` takes rows of so many ``features``.

    A row of zeros is predicted, to learn what a prediction looks like: a number, or one for each class.
    """
    sample = np.asarray(predict(np.zeros((1, features), dtype)))
    signature = Signature(
        (Tensor(INPUT, (None, features), dtype),),
        (Tensor(PREDICTION, (None, *sample.shape[1:]), str(sample.dtype)),),
    )
    return TensorModel(signature, lambda feed: [np.asarray(predict(feed[INPUT]))], columns=columns, missing=True)
