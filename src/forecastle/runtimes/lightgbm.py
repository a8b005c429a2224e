"""LightGBM's models, in its text format, which runs no code when it is read."""

from __future__ import annotations

from typing import Any

import lightgbm as lgb

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
    try:
        booster = lgb.Booster(model_file=artifact.path)
    except (lgb.basic.LightGBMError, ValueError) as error:
        raise BadArtifact(f"{artifact.source} cannot be loaded by LightGBM: {error}") from None
    return _of(booster)


def _served(model: Any) -> TensorModel | None:
    if isinstance(model, lgb.LGBMModel):
        model = model.booster_
    return _of(model) if isinstance(model, lgb.Booster) else None


def _of(booster: Any) -> TensorModel:
    count = threads()

    def predict(rows: Array) -> Any:
        return booster.predict(rows, num_threads=count)

    names = booster.feature_name()
    given = names != [f"Column_{index}" for index in range(len(names))]  # what LightGBM calls those without a name
    return tabular(predict, booster.num_feature(), "float64", names if given else None)
