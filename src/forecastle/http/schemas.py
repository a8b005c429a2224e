"""Tensors as JSON Schema, and examples of them."""

from __future__ import annotations

from typing import Any

from forecastle.models.signature import Signature, Tensor

LARGEST_EXAMPLE = 64
"""How many numbers an example holds at most; of a larger input none is shown."""

_TYPES = {"str": "string", "object": "object", "bool": "boolean"}


def element(tensor: Tensor) -> dict[str, Any]:
    """The schema of one element. Where a number is wanted, true and false will do: they are 1 and 0."""
    if tensor.dtype in _TYPES:
        return {"type": _TYPES[tensor.dtype]}
    return {"type": ["integer" if _whole(tensor) else "number", "boolean"]}


def _whole(tensor: Tensor) -> bool:
    return tensor.dtype.startswith(("int", "uint"))


def array(tensor: Tensor, *, record: bool = False) -> dict[str, Any]:
    """The schema of a tensor as nested lists; of one record, that is without the batch axis."""
    schema = element(tensor)
    for size in reversed(tensor.shape[1:] if record else tensor.shape):
        schema = {
            "type": "array",
            "items": schema,
            "minItems": size or 1,
            **({} if size is None else {"maxItems": size}),
        }
    return schema


def value(tensor: Tensor) -> dict[str, Any]:
    """The schema of what a client may send for an input: a batch, or one record."""
    if not tensor.shape:
        return {}
    schema: dict[str, Any] = {"anyOf": [array(tensor), array(tensor, record=True)]}
    found = example(tensor)
    return schema if found is None else {**schema, "examples": [found]}


def example(tensor: Tensor) -> Any:
    """One record of an input, of zeros or empty texts; ``None`` where it would be too large to read."""
    count = 1
    for size in tensor.shape[1:]:
        count *= size or 1
    if count > LARGEST_EXAMPLE or tensor.dtype == "object":
        return None
    made: Any = "" if tensor.dtype == "str" else False if tensor.dtype == "bool" else 0
    if tensor.dtype.startswith(("float", "complex")):
        made = 0.0
    for size in reversed(tensor.shape[1:]):
        made = [made] * (size or 1)
    return made


def is_picture(signature: Signature, tensor: Tensor) -> bool:
    """Say whether an input is sent as a picture."""
    return signature.input_type.startswith("image/") and len(tensor.shape) == 4


def shown(tensor: Tensor) -> str:
    """A tensor's shape for people, as MMS shows it: without the batch axis, 0 for any size."""
    return str([size or 0 for size in tensor.shape[1:]])
