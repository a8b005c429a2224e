"""Signatures and labels for an archive: completed where they say too little, refused where they do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from forecastle.errors import BadArtifact
from forecastle.models.signature import JPEG, JSON, Signature, Tensor, format_signature, parse_signature


def of_shapes(shapes: Mapping[str, tuple[int | None, ...]]) -> Signature:
    """Return the signature of inputs of these shapes: pictures where all of them are shaped as pictures are."""
    inputs = tuple(Tensor(name, shape) for name, shape in shapes.items())
    return described(Signature(inputs, ()))


def described(signature: Signature) -> Signature:
    """Say of inputs whose content type nobody stated whether they are pictures."""
    pictures = all(len(tensor.shape) == 4 and tensor.shape[1] in {1, 3} for tensor in signature.inputs)
    return msgspec.structs.replace(signature, input_type=JPEG if pictures else JSON)


def can_be_written(signature: Signature) -> bool:
    """Say whether a ``signature.json`` can hold it: one with an input, and no tensor without axes."""
    return bool(signature.inputs) and all(tensor.shape for tensor in (*signature.inputs, *signature.outputs))


def completed(data: bytes, origin: str, outputs: tuple[Tensor, ...]) -> tuple[bytes, list[str]]:
    """Write a ``signature.json`` as MMS reads it, with ``outputs`` where it lists none; also say what was changed.

    Keys that we do not know stay.

    Raises:
        BadArtifact: it is no signature; the message says what is wrong.
    """
    given = parse_signature(data, origin)
    full = msgspec.structs.replace(given, outputs=given.outputs or tuple(each for each in outputs if each.shape))
    document: dict[str, Any] = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    written: dict[str, Any] = msgspec.json.decode(format_signature(full))
    changes = []
    if {"input", "output"} & document.keys():
        changes.append(f"{origin} says input and output; the archive's says inputs and outputs, as MMS's code reads it")
    if full.outputs and not given.outputs:
        changes.append(f"{origin} lists no outputs; the archive's lists the model's: {_names(full.outputs)}")
    for plural, singular in (("inputs", "input"), ("outputs", "output")):
        entries = document.pop(plural, None) or document.pop(singular, None) or [{} for _ in written[plural]]
        document.pop(singular, None)
        kept = [{key: value for key, value in entry.items() if key != "shape"} for entry in entries]
        written[plural] = [{**entry, **ours} for entry, ours in zip(kept, written[plural], strict=True)]
    unknown = {key: value for key, value in document.items() if key not in written}
    return msgspec.json.format(msgspec.json.encode({**written, **unknown}), indent=2) + b"\n", changes


def check_labels(labels: Sequence[str], outputs: Sequence[Tensor], origin: str) -> None:
    """Refuse labels that are as many as no output's scores.

    Raises:
        BadArtifact: they are not.
    """
    scores = [tensor for tensor in outputs if len(tensor.shape) > 1]
    if scores and not any(tensor.shape[1] in {None, len(labels)} for tensor in scores):
        counts = " and ".join(f"{tensor.name!r} has {tensor.shape[1]}" for tensor in scores)
        raise BadArtifact(
            f"{origin} has {len(labels)} labels, and the output {counts}; expected one label a line for each score, in "
            "the output's order"
        )


def _names(tensors: Sequence[Tensor]) -> str:
    return ", ".join(tensor.name for tensor in tensors)
