"""The signature of a model that knows its tensors only in part: what lies beside its file, and what a try shows."""

from __future__ import annotations

from pathlib import Path

from forecastle.errors import BadArtifact
from forecastle.models.mms import SIGNATURE, SYNSET
from forecastle.models.signature import Signature, Tensor, read_signature
from forecastle.models.synset import read_synset
from forecastle.runtimes.convert import Array


def stated(path: Path) -> Signature | None:
    """Return the signature.json that lies beside a model's file, or ``None``."""
    file = path.with_name(SIGNATURE)
    return read_signature(file) if file.is_file() else None


def labels(path: Path) -> list[str] | None:
    """Return the synset.txt that lies beside a model's file, or ``None``."""
    file = path.with_name(SYNSET)
    return read_synset(file) if file.is_file() else None


def output(name: str, array: Array, rows: int | None) -> Tensor:
    """Describe an output by an example of it, which a sample of so many ``rows`` gave; sizes but the rows' are free."""
    if rows is None or array.ndim == 0 or array.shape[0] != rows:
        return Tensor(name, (), str(array.dtype))
    return Tensor(name, (None,) * array.ndim, str(array.dtype))


def checked(given: Signature, inputs: int, outputs: int, origin: str) -> Signature:
    """Return a stated signature whose tensors are as many as the model's.

    Raises:
        BadArtifact: they are not.
    """
    for what, tensors, count in (("inputs", given.inputs, inputs), ("outputs", given.outputs, outputs)):
        if tensors and len(tensors) != count:
            raise BadArtifact(f"{origin}: signature.json has {len(tensors)} {what}, the model has {count}")
    return given
