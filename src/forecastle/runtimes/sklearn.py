"""scikit-learn's models, from files of skops, joblib or pickle.

A pickle runs code when it is read, so it must be the operator's own. skops reads without running anything, and refuses
types that it does not know to be harmless.
"""

from __future__ import annotations

import pickle
import warnings
import zlib
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import sklearn.utils
import skops.io
from skops.io.exceptions import UntrustedTypesFoundException

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature, Tensor
from forecastle.runtimes.batching import Run, TensorModel
from forecastle.runtimes.convert import Array
from forecastle.runtimes.tensor import TensorRuntime

# What unpickling raises at bytes that are cut short or damaged, and at classes that have changed since.
_FAULTS = (
    *(pickle.UnpicklingError, zlib.error, EOFError, OSError, ImportError),
    *(ValueError, KeyError, IndexError, AttributeError, TypeError),
)

INPUT, PREDICTION, PROBABILITIES = "X", "prediction", "probabilities"


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of a model that has ``predict``; a classifier gives probabilities too, if it can."""
    return TensorRuntime(lambda: _load(artifact), adopt=_served)


def _load(artifact: Artifact) -> TensorModel:
    model = _read(artifact)
    served = _served(model)
    if served is None:
        raise BadArtifact(f"{artifact.source} holds a {type(model).__name__}, which has no predict; expected a model")
    return served


def _served(model: Any) -> TensorModel | None:
    if not callable(getattr(model, "predict", None)):
        return None
    # Rows come without names; that a model was fitted with them is no news to anybody.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else [str(name) for name in names]
    return TensorModel(_signature(model), _run(model), columns=columns, missing=_takes_missing(model))


def _takes_missing(model: Any) -> bool:
    """Say whether the model knows what to do with a feature that is missing, as trees and imputers do."""
    get_tags = getattr(sklearn.utils, "get_tags", None)  # since scikit-learn 1.6
    try:
        return get_tags is not None and bool(get_tags(model).input_tags.allow_nan)
    except (AttributeError, TypeError, ValueError):  # an estimator of somebody else's making
        return False


def _read(artifact: Artifact) -> Any:
    path, origin = Path(artifact.path), artifact.source
    if artifact.kind == "skops":
        try:
            return skops.io.load(path)
        except UntrustedTypesFoundException as error:
            raise LoadFailed(f"{origin} holds types that skops does not trust: {error}") from None
    try:
        return joblib.load(path)
    except ModuleNotFoundError as error:
        raise LoadFailed(f"{origin} needs the module {error.name!r}, which is not installed here") from error
    except _FAULTS as error:
        raise BadArtifact(f"{origin} cannot be read: {type(error).__name__}: {error}") from error


def _signature(model: Any) -> Signature:
    inputs = (Tensor(INPUT, (None, getattr(model, "n_features_in_", None)), "float64"),)
    classes = getattr(model, "classes_", None)
    if not isinstance(classes, np.ndarray):
        return Signature(inputs, (Tensor(PREDICTION, (None,), "float64"),))
    kind = "str" if classes.dtype.kind in "OUS" else str(classes.dtype)
    outputs = [Tensor(PREDICTION, (None,), kind)]
    if hasattr(model, "predict_proba"):
        outputs.append(Tensor(PROBABILITIES, (None, len(classes))))
    return Signature(inputs, tuple(outputs))


def _run(model: Any) -> Run:
    with_probabilities = isinstance(getattr(model, "classes_", None), np.ndarray) and hasattr(model, "predict_proba")

    def run(feed: dict[str, Array]) -> list[Array]:
        rows = feed[INPUT]
        outputs = [np.asarray(model.predict(rows))]
        if with_probabilities:
            outputs.append(np.asarray(model.predict_proba(rows)))
        return outputs

    return run
