"""The engine below a service: the runtime of the model's kind, or a function that a program made."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from forecastle.errors import BadInput, LoadFailed
from forecastle.messages import Part
from forecastle.models.artifact import Artifact, open_artifact
from forecastle.models.mms import SIGNATURE, SYNSET
from forecastle.models.signature import Signature, read_signature
from forecastle.models.synset import read_synset
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.reading import Reader
from forecastle.runtimes.service.arrays import plain
from forecastle.runtimes.table import open_runtime


def is_folder(path: Any) -> bool:
    """Say whether this is the path of a directory."""
    return isinstance(path, str | Path) and Path(path).is_dir()


def folder(artifact: Artifact) -> str:
    """Return the directory in which an artifact's model lies."""
    path = Path(artifact.path)
    return str(path if path.is_dir() else path.parent)


def load(source: str, served: Artifact | None) -> TensorModel:
    """Load the model at a path or URL; ``served`` is the artifact that a server has opened, if one has.

    Raises:
        StartError: there is no model, it is broken, or it has no tensors.
    """
    if served is not None and source in {served.path, folder(served)}:
        return _loaded(served)
    with tempfile.TemporaryDirectory(prefix="forecastle-") as cache:
        return _loaded(open_artifact(source, cache=Path(cache)))


def around(net: Callable[..., Any], model_dir: str) -> TensorModel:
    """Return a function over arrays as a model, with the signature and the labels that lie in a directory.

    Raises:
        BadArtifact: there is no signature.json, or a broken one.
    """
    signature = read_signature(Path(model_dir) / SIGNATURE)
    synset = Path(model_dir) / SYNSET

    def run(feed: dict[str, np.ndarray[Any, Any]]) -> Sequence[Any]:
        outputs = net(*(feed[tensor.name] for tensor in signature.inputs))
        return [plain(output) for output in (outputs if isinstance(outputs, list | tuple) else [outputs])]

    return TensorModel(signature, run, read_synset(synset) if synset.is_file() else None)


def read(values: list[Any], signature: Signature) -> list[Any]:
    """Read a request's values, pictures or nested lists, to an array for each input, with a batch axis in front.

    Raises:
        BadInput: a value is missing, or does not fit the input.
    """
    if len(values) > len(signature.inputs):
        raise BadInput(f"there are {len(values)} values; expected {len(signature.inputs)}, one for each input")
    reader = Reader(signature)
    names = [tensor.name for tensor in signature.inputs]
    if any(isinstance(value, bytes) for value in values):
        item = reader.read([Part(name, "", value) for name, value in zip(names, values, strict=False)])
    else:
        item = reader.value(dict(zip(names, values, strict=False)))
    return [np.asarray(value) for value in item.values]


def _loaded(artifact: Artifact) -> TensorModel:
    if artifact.runtime == "script":
        raise LoadFailed(f"{artifact.source} is a {artifact.kind}; a service class needs a model with a signature")
    runtime: Any = open_runtime(msgspec.structs.replace(artifact, service=""))
    model = runtime.model_fn(folder(artifact))
    if not isinstance(model, TensorModel):
        raise LoadFailed(f"{artifact.source}: the {artifact.runtime} runtime knows no tensors, which a service needs")
    return model
