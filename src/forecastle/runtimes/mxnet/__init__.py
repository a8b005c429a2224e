"""MXNet models without MXNet: an MMS archive is converted when it is loaded, and run by onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.mxnet.archive import import_archive
from forecastle.runtimes.onnx import make_session
from forecastle.runtimes.tensor import TensorRuntime


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of an unpacked MMS archive.

    Loading it raises `BadArtifact` where its files contradict each other, and `LoadFailed` for an operator that cannot
    be converted.
    """
    return TensorRuntime(lambda: _load(artifact))


def _load(artifact: Artifact) -> TensorModel:
    try:
        imported = import_archive(Path(artifact.path), artifact.source)
    except LoadFailed as error:
        raise LoadFailed(f"{error.message}; --engine mxnet has MXNet itself run it") from None
    session = make_session(imported.model.SerializeToString(), artifact.source)
    names = [output.name for output in session.get_outputs()]
    _rehearse(session, imported.signature, artifact.source)
    return TensorModel(imported.signature, lambda feed: session.run(names, feed), imported.labels)


def _rehearse(session: ort.InferenceSession, signature: Signature, origin: str) -> None:
    """Run once on zeros, so that shapes that do not fit, deep in the network, are told before the first request.

    Where an input is free in more than its batch there is no telling which sizes make sense.
    """
    if any(None in tensor.shape[1:] for tensor in signature.inputs):
        return
    feed = {tensor.name: np.zeros([size or 1 for size in tensor.shape], np.float32) for tensor in signature.inputs}
    try:
        session.run(None, feed)
    except Exception as error:  # noqa: BLE001 -- onnxruntime's own errors have no common class
        reason = " ".join(str(error).split())[:500]
        raise BadArtifact(f"{origin} cannot be run on inputs of its signature's shapes: {reason}") from None
