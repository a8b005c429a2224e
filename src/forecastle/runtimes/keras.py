"""Keras 3 models: ``.keras`` files and the older ``.h5``, computed with whichever of its backends is installed.

Nothing in a ``.keras`` file runs when it is read: a layer that holds Python code is refused.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.models.signature import DTYPES, Signature, Tensor
from forecastle.runtimes import described
from forecastle.runtimes.batching import Run, TensorModel
from forecastle.runtimes.convert import Array
from forecastle.runtimes.tensor import TensorRuntime
from forecastle.runtimes.threads import threads

BACKEND = "KERAS_BACKEND"
"""Keras's own environment variable for the library that it computes with."""
BACKENDS = ("torch", "tensorflow", "jax")

if BACKEND not in os.environ:
    # It must be chosen before Keras is imported, which takes TensorFlow unless told otherwise.
    _found = next((name for name in BACKENDS if name in sys.modules or importlib.util.find_spec(name)), None)
    if _found is None:
        raise LoadFailed("Keras computes with torch, tensorflow or jax, and none is installed: pip install torch")
    os.environ[BACKEND] = _found

import keras  # noqa: E402 -- only now is its backend chosen


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of a model."""
    return TensorRuntime(lambda: _load(artifact), adopt=_served)


def _load(artifact: Artifact) -> TensorModel:
    _limit_threads()
    try:
        model = _read(Path(artifact.path))
    except (ValueError, TypeError, OSError, KeyError, ImportError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise BadArtifact(f"{artifact.source} cannot be loaded by Keras: {reason[:300]}") from None
    return _of(model, described.labels(Path(artifact.path)))


def _read(path: Path) -> Any:
    """Load a file, whatever it is called: Keras goes by its name's ending."""
    with path.open("rb") as file:
        ending = ".keras" if file.read(2) == b"PK" else ".h5"
    with tempfile.TemporaryDirectory() as folder:
        named = Path(folder, path.name.split(".")[0] + ending)
        named.symlink_to(path.absolute())
        return keras.models.load_model(named, compile=False)


def _served(model: Any) -> TensorModel | None:
    return _of(model, None) if isinstance(model, keras.Model) else None


def _of(model: Any, names: list[str] | None) -> TensorModel:
    inputs = tuple(_tensor(tensor.name, tensor) for tensor in model.inputs)
    given = getattr(model, "output_names", None) or [tensor.name for tensor in model.outputs]
    outputs = tuple(_tensor(name, tensor) for name, tensor in zip(given, model.outputs, strict=True))
    return TensorModel(Signature(inputs, outputs), _run(model, inputs), names)


def _tensor(name: str, tensor: Any) -> Tensor:
    dtype = str(tensor.dtype)
    return Tensor(name, tuple(tensor.shape), dtype if dtype in DTYPES else "float32")


def _run(model: Any, inputs: tuple[Tensor, ...]) -> Run:
    def run(feed: dict[str, Array]) -> list[Array]:
        values = [feed[tensor.name] for tensor in inputs]
        result = model.predict_on_batch(values[0] if len(values) == 1 else values)
        results = result.values() if isinstance(result, dict) else result if isinstance(result, list) else [result]
        return [np.asarray(array) for array in results]

    return run


def _limit_threads() -> None:
    """Keep the backend to a replica's share of the cores."""
    backend = sys.modules.get(keras.backend.backend())
    if backend is not None and hasattr(backend, "set_num_threads"):
        backend.set_num_threads(threads())
