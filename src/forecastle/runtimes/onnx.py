"""ONNX models, run by onnxruntime: names, types and shapes come from the model itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import onnxruntime as ort

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature, Tensor
from forecastle.runtimes import described
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.tensor import TensorRuntime
from forecastle.runtimes.threads import threads

_DTYPES = {"float": "float32", "double": "float64", "string": "str"}


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of an ``.onnx`` file, or of a directory with one and perhaps signature.json and synset.txt."""
    return TensorRuntime(lambda: _load(artifact))


def make_session(model: bytes | str, origin: str = "the model") -> ort.InferenceSession:
    """Return a session over a model's bytes or file, on the CPU; ``origin`` names the model in messages.

    Raises:
        BadArtifact: onnxruntime cannot load the model; the message has its reason.
        LoadFailed: ``FORECASTLE_THREADS`` is no number of threads.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # A thread that spins while it waits takes its core from the other replicas and from the frontend.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 -- onnxruntime's own errors have no common class
        reason = " ".join(str(error).split())[:500]
        raise BadArtifact(f"{origin} cannot be loaded by onnxruntime: {reason}") from None


def tensors(session: ort.InferenceSession, origin: str) -> Signature:
    """Return the signature that a session's own inputs and outputs make.

    Raises:
        LoadFailed: an input is no tensor.
    """
    inputs = tuple(_tensor(node) for node in session.get_inputs())
    odd = [node for node, tensor in zip(session.get_inputs(), inputs, strict=True) if tensor.dtype == "object"]
    if odd:
        raise LoadFailed(f"{origin}: the input {odd[0].name!r} is a {odd[0].type}; expected tensors")
    return Signature(inputs, tuple(_tensor(node) for node in session.get_outputs()))


def _load(artifact: Artifact) -> TensorModel:
    path = Path(artifact.path)
    if path.is_dir():
        (path,) = path.glob("*.onnx")
    session = make_session(str(path), artifact.source)
    signature = tensors(session, artifact.source)
    given = described.stated(path)
    if given is not None:
        signature = _merged(given, signature, artifact.source)
    names = [tensor.name for tensor in signature.outputs]
    return TensorModel(signature, lambda feed: session.run(names, feed), described.labels(path))


def _tensor(node: Any) -> Tensor:
    kind = node.type.removeprefix("tensor(").removesuffix(")")
    if not node.type.startswith("tensor("):
        return Tensor(node.name, (None,), "object")  # a list with one entry for each row
    shape = tuple(size if isinstance(size, int) and size > 0 else None for size in node.shape)
    return Tensor(node.name, shape, _DTYPES.get(kind, kind))


def _merged(stated: Signature, found: Signature, origin: str) -> Signature:
    """Take content types and order from signature.json and the rest from the model, once the two agree."""
    inputs = _matched("input", stated.inputs, found.inputs, origin)
    outputs = _matched("output", stated.outputs, found.outputs, origin) if stated.outputs else found.outputs
    return msgspec.structs.replace(stated, inputs=inputs, outputs=outputs)


def _matched(what: str, stated: tuple[Tensor, ...], found: tuple[Tensor, ...], origin: str) -> tuple[Tensor, ...]:
    by_name = {tensor.name: tensor for tensor in found}
    if {tensor.name for tensor in stated} != set(by_name):
        raise BadArtifact(
            f"{origin}: signature.json names the {what}s {[tensor.name for tensor in stated]}, the model has "
            f"{list(by_name)}; expected the same"
        )
    for tensor in stated:
        has = by_name[tensor.name].shape
        if len(has) != len(tensor.shape) or any(
            a != b for a, b in zip(tensor.shape, has, strict=True) if a is not None and b is not None
        ):
            raise BadArtifact(
                f"{origin}: signature.json gives the {what} {tensor.name!r} the shape {_show(tensor.shape)}, the model "
                f"has {_show(has)} (0 stands for any size)"
            )
    return tuple(
        msgspec.structs.replace(
            by_name[tensor.name],
            shape=(
                # A batch axis that the model leaves free stays free: signatures often state 1 for "one record".
                *by_name[tensor.name].shape[:1],
                *(a if b is None else b for a, b in zip(tensor.shape[1:], by_name[tensor.name].shape[1:], strict=True)),
            ),
        )
        for tensor in stated
    )


def _show(shape: tuple[int | None, ...]) -> str:
    return str([size or 0 for size in shape])
