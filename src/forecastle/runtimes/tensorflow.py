"""TensorFlow's SavedModels, by their signature ``serving_default``, or their only one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from forecastle.errors import BadArtifact
from forecastle.models.artifact import Artifact
from forecastle.models.signature import DTYPES, Signature, Tensor
from forecastle.runtimes import described
from forecastle.runtimes.batching import Run, TensorModel
from forecastle.runtimes.convert import Array
from forecastle.runtimes.tensor import TensorRuntime
from forecastle.runtimes.threads import threads

SERVING = "serving_default"


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of a SavedModel's directory."""
    return TensorRuntime(lambda: _load(artifact))


def _load(artifact: Artifact) -> TensorModel:
    with contextlib.suppress(RuntimeError):  # the user's code has begun to compute, and the threads stay as they are
        tf.config.threading.set_intra_op_parallelism_threads(threads())
        tf.config.threading.set_inter_op_parallelism_threads(1)
    loaded = _read(artifact)
    signatures = dict(loaded.signatures)
    function = signatures.get(SERVING) or (next(iter(signatures.values())) if len(signatures) == 1 else None)
    if function is None:
        found = ", ".join(map(str, signatures)) or "none"
        raise BadArtifact(f"{artifact.source} has no signature {SERVING!r} (it has {found}); export it with one")
    # Both come as maps, whose order is nobody's promise.
    inputs = tuple(_tensor(name, spec) for name, spec in sorted(function.structured_input_signature[1].items()))
    outputs = tuple(_tensor(name, spec) for name, spec in sorted(function.structured_outputs.items()))
    labels = described.labels(Path(artifact.path) / "saved_model.pb")
    return TensorModel(Signature(inputs, outputs), _run(loaded, function, outputs), labels)


def _read(artifact: Artifact) -> Any:
    try:
        return tf.saved_model.load(artifact.path)
    except AttributeError:
        # What was saved with the state of its optimizer is read only by the older loader.
        return tf.compat.v1.saved_model.load_v2(artifact.path, tags=["serve"])
    except (OSError, ValueError, RuntimeError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise BadArtifact(f"{artifact.source} cannot be loaded by TensorFlow: {reason[:300]}") from None


def _tensor(name: str, spec: Any) -> Tensor:
    dtype = "str" if spec.dtype == tf.string else spec.dtype.name
    shape = () if spec.shape.rank is None else tuple(spec.shape.as_list())
    return Tensor(name, shape, dtype if dtype in DTYPES else "float32")


def _run(loaded: Any, function: Any, outputs: tuple[Tensor, ...]) -> Run:
    def run(feed: dict[str, Array]) -> list[Array]:
        assert loaded is not None, "a function outlives its variables only as long as what was loaded does"
        found = function(**{name: tf.constant(array) for name, array in feed.items()})
        return [_array(found[tensor.name]) for tensor in outputs]

    return run


def _array(tensor: Any) -> Array:
    array: Array = np.asarray(tensor.numpy())
    if array.dtype == object:  # TensorFlow's texts are bytes
        texts = [text.decode() for text in array.flat]
        array = np.array(texts, object).reshape(array.shape)
    elif array.dtype.name == "bfloat16":  # numpy has no such type of its own
        array = array.astype(np.float32)
    return array
