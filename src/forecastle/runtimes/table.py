"""The runtimes, by the name an artifact gives, and the extra each needs."""

from __future__ import annotations

import importlib

from forecastle.errors import LoadFailed
from forecastle.models import mar
from forecastle.models.artifact import Artifact

RUNTIMES = {
    "onnx": "forecastle.runtimes.onnx",
    "mxnet": "forecastle.runtimes.mxnet",
    "mxnet_native": "forecastle.runtimes.mxnet_native",
    "sklearn": "forecastle.runtimes.sklearn",
    "xgboost": "forecastle.runtimes.xgboost",
    "lightgbm": "forecastle.runtimes.lightgbm",
    "torch": "forecastle.runtimes.torch",
    "keras": "forecastle.runtimes.keras",
    "tensorflow": "forecastle.runtimes.tensorflow",
}
"""Each module has ``open(artifact)``, which returns the provider of hooks. Its framework is imported with it."""


SERVICE = "forecastle.runtimes.service"
"""Where an artifact names a service class: hooks of that class, over the runtime of the model."""


HANDLER = "forecastle.runtimes.handler"
"""What serves archives whose code is a handler; it has no framework of its own."""


def open_runtime(artifact: Artifact) -> object:
    """Return the provider of hooks for the artifact.

    Raises:
        LoadFailed: the runtime's framework is not installed; the message names the extra that brings it.
    """
    try:
        module = importlib.import_module(_module(artifact))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("forecastle"):
            raise
        package = error.name.partition(".")[0]
        raise LoadFailed(
            f"the {artifact.runtime} runtime needs the package {package!r}: "
            f"pip install 'forecastle[{artifact.runtime}]'"
        ) from error
    runtime: object = module.open(artifact)
    return runtime


def _module(artifact: Artifact) -> str:
    if artifact.runtime == mar.RUNTIME:
        return HANDLER
    return SERVICE if artifact.service else RUNTIMES[artifact.runtime]
