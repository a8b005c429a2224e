"""MMS's MXNet archives, served without MXNet: symbol and parameters become an ONNX model that onnxruntime runs."""

from __future__ import annotations

from pathlib import Path

from forecastle.models import mms
from forecastle.models.artifact import Artifact
from forecastle.models.synset import read_synset
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.mxnet.archive import import_archive
from forecastle.runtimes.onnx import make_session
from forecastle.runtimes.tensor import TensorRuntime


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of an unpacked MMS archive; the conversion happens when the model is loaded."""
    return TensorRuntime(lambda: _load(artifact))


def _load(artifact: Artifact) -> TensorModel:
    directory = Path(artifact.path)
    imported = import_archive(directory, artifact.source)
    session = make_session(imported.model.SerializeToString(), artifact.source)
    outputs = [output.name for output in session.get_outputs()]
    synset = mms.find_files(directory, artifact.source).synset
    labels = None if synset is None else read_synset(synset)
    return TensorModel(imported.signature, lambda feed: session.run(outputs, feed), labels)
