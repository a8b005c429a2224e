"""A whole MMS archive as an ONNX model with its signature, the two held against each other."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import onnx

from forecastle.errors import BadArtifact
from forecastle.models import mms
from forecastle.models.signature import Signature, Tensor, read_signature
from forecastle.models.synset import read_synset
from forecastle.runtimes.mxnet.importer import to_onnx
from forecastle.runtimes.mxnet.params import load


class Imported(NamedTuple):
    """The model, its signature with everything filled in that the archive leaves out, and a classifier's labels."""

    model: onnx.ModelProto
    signature: Signature
    labels: list[str] | None


def import_archive(directory: Path, origin: str) -> Imported:
    """Read the archive unpacked in ``directory``; ``origin`` names it in messages.

    The signature's inputs become float32, as MXNet binds them, whatever dtype it states; its outputs are the symbol's
    where it lists none.

    Raises `BadArtifact` where files are missing or contradict each other, and `LoadFailed` for what `to_onnx` refuses.
    """
    files = mms.find_files(directory, origin)
    signature = read_signature(files.signature)
    model = to_onnx(files.symbol, load(files.params), {tensor.name: tensor.shape for tensor in signature.inputs})
    given = tuple(msgspec.structs.replace(tensor, dtype="float32") for tensor in signature.inputs)
    found = tuple(_tensor(output) for output in model.graph.output)
    if signature.outputs:
        _check_outputs(signature.outputs, found, origin)
    complete = msgspec.structs.replace(signature, inputs=given, outputs=signature.outputs or found)
    return Imported(model, complete, read_synset(files.synset) if files.synset else None)


def _tensor(output: onnx.ValueInfoProto) -> Tensor:
    sizes = output.type.tensor_type.shape.dim
    return Tensor(output.name, tuple(size.dim_value if size.HasField("dim_value") else None for size in sizes))


def _check_outputs(stated: tuple[Tensor, ...], found: tuple[Tensor, ...], origin: str) -> None:
    if len(stated) != len(found):
        raise BadArtifact(
            f"{origin}: signature.json lists {len(stated)} outputs and the symbol has {len(found)} "
            f"({', '.join(tensor.name for tensor in found)}); expected one for each, in the symbol's order"
        )
    for want, has in zip(stated, found, strict=True):
        sizes = zip(want.shape, has.shape, strict=False)
        if has.shape and (
            len(want.shape) != len(has.shape) or any(a != b for a, b in sizes if a is not None and b is not None)
        ):
            raise BadArtifact(
                f"{origin}: signature.json says that the output {want.name!r} has the shape {_show(want.shape)}, and "
                f"the symbol computes {_show(has.shape)} (0 stands for any size); expected the same"
            )


def _show(shape: tuple[int | None, ...]) -> str:
    return str([size or 0 for size in shape])
