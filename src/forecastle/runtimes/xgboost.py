"""XGBoost's models, in its JSON and UBJ formats, which run no code when they are read.

A model that stopped early predicts with the trees up to its best iteration, as XGBoost's own estimators do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xgboost as xgb

from forecastle.errors import BadArtifact
from forecastle.models.artifact import Artifact
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.convert import Array
from forecastle.runtimes.tabular import tabular
from forecastle.runtimes.tensor import TensorRuntime
from forecastle.runtimes.threads import threads


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of a booster."""
    return TensorRuntime(lambda: _load(artifact), adopt=_served)


def _load(artifact: Artifact) -> TensorModel:
    booster = xgb.Booster()
    try:
        # As bytes, whose format XGBoost tells by what they hold; that of a file it tells by the name's ending.
        booster.load_model(bytearray(Path(artifact.path).read_bytes()))
    except (xgb.core.XGBoostError, ValueError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        raise BadArtifact(f"{artifact.source} cannot be loaded by XGBoost: {reason[:300]}") from None
    return _of(booster)


def _served(model: Any) -> TensorModel | None:
    if isinstance(model, xgb.XGBModel):
        model = model.get_booster()
    return _of(model) if isinstance(model, xgb.Booster) else None


def _of(booster: Any) -> TensorModel:
    booster.set_param({"nthread": threads()})
    best = booster.attr("best_iteration")
    used = (0, 0) if best is None else (0, int(best) + 1)

    def predict(rows: Array) -> Any:
        # In place: a matrix of XGBoost's own costs a small request far more than the prediction.
        return booster.inplace_predict(rows, iteration_range=used, validate_features=False)

    names = booster.feature_names
    return tabular(predict, booster.num_features(), "float32", None if names is None else [str(name) for name in names])
