"""From a request's parts to an item of a model with a signature: which part is which input, and how it is read."""

from __future__ import annotations

import ast
from typing import Any

import msgspec

from forecastle import media
from forecastle.errors import BadInput, UnsupportedMediaType
from forecastle.messages import Part
from forecastle.models.signature import Signature, Tensor
from forecastle.runtimes.batching import Item
from forecastle.runtimes.convert import Array, to_array
from forecastle.runtimes.vision import decode_image, is_picture

LITERAL_LIMIT = 1 << 20
"""Bytes of a form value that are tried as a Python literal, as clients of MMS write them; JSON has no such limit."""

_TEXTS = {media.JSON, "text/plain"}


class Reader:
    """Reads requests for one model."""

    def __init__(self, signature: Signature) -> None:
        self._inputs = signature.inputs
        self._pictures = signature.input_type == "image/jpeg"
        self._names = {tensor.name: index for index, tensor in enumerate(signature.inputs)}
        for index in range(len(signature.inputs)):
            self._names.setdefault(f"input{index}", index)
        self._quick = _Quick.of(signature, self._names)

    def read(self, parts: list[Part]) -> Item:
        """Read one request.

        Raises:
            BadInput: an input is missing, unknown, given twice or wrong; the message names it.
            UnsupportedMediaType: a part's content type cannot be read; the message lists those that can.
        """
        if len(parts) == 1 and not parts[0].name:
            part = parts[0]
            if self._quick is not None and part.content_type == media.JSON:
                item = self._quick.read(part.data)
                if item is not None:
                    return item
            return self._raw(part)
        values: dict[int, Any] = {}
        for part in parts:
            index = self._index(part.name, "field")
            if index in values:
                raise self._twice(index, part.name)
            values[index] = self._value(part, self._inputs[index])
        return self._item(values)

    def value(self, value: Any) -> Item:
        """Take what a user's ``input_fn`` returned: the value of the only input, or a dict by input."""
        if isinstance(value, Item):
            return value
        if isinstance(value, dict):
            return self._item(self._by_name(value))
        if len(self._inputs) != 1:
            raise BadInput(f"the model has {len(self._inputs)} inputs; expected an object with {self._expected()}")
        return self._item({0: value})

    def _raw(self, part: Part) -> Item:
        return self.value(self._value(part, self._inputs[0]))

    def _value(self, part: Part, tensor: Tensor) -> Any:
        """Decode one part for an input: to an array, nested lists, or (a raw body's) values by name."""
        kind = media.parse(part.content_type).type if part.content_type else ""
        if not part.data:
            raise BadInput(f"the input {tensor.name!r} is empty; expected {self._readable(tensor)}")
        shape = _picture_shape(tensor)
        if shape is not None and (kind.startswith("image/") or (kind in {"", media.BYTES} and is_picture(part.data))):
            channels, height, width = shape
            return decode_image(part.data, height, width, channels, tensor.dtype)
        if kind in {media.NPY, media.NPZ, media.CSV} or media.is_json(part.content_type):
            return media.decode(part.data, part.content_type)
        if kind in {"", *_TEXTS} and not (self._pictures and part.data.lstrip()[:1] not in {b"[", b"{"}):
            return _literal(part.data, tensor)
        if kind in {"", media.BYTES} and shape is not None:
            raise BadInput(f"the input {tensor.name!r} is no picture; expected {self._readable(tensor)}")
        raise UnsupportedMediaType(
            f"the input {tensor.name!r} cannot be read from {part.content_type or 'a body without content type'}; "
            f"expected {self._readable(tensor)}"
        )

    def _item(self, values: dict[int, Any]) -> Item:
        missing = [tensor.name for index, tensor in enumerate(self._inputs) if index not in values]
        if missing:
            raise BadInput(f"the input {missing[0]!r} is missing; expected {self._expected()}")
        arrays: list[Array] = []
        singles: list[bool] = []
        for index, tensor in enumerate(self._inputs):
            array, single = to_array(values[index], tensor)
            arrays.append(array)
            if tensor.shape:
                singles.append(single)
        rows = [array.shape[0] for array, tensor in zip(arrays, self._inputs, strict=True) if tensor.shape]
        if len(set(rows)) > 1:
            counts = ", ".join(f"{t.name} {r}" for t, r in zip(self._inputs, rows, strict=False))
            raise BadInput(f"the inputs have different numbers of rows ({counts}); expected the same")
        shapes = tuple(array.shape[1:] for array in arrays)
        return Item(tuple(arrays), shapes, rows[0] if rows else 1, bool(singles) and all(singles))

    def _by_name(self, value: dict[Any, Any]) -> dict[int, Any]:
        values: dict[int, Any] = {}
        for name, of_name in value.items():
            index = self._index(str(name), "key")
            if index in values:
                raise self._twice(index, str(name))
            values[index] = of_name
        return values

    def _twice(self, index: int, name: str) -> BadInput:
        return BadInput(f"the input {self._inputs[index].name!r} was sent twice, the second time as {name!r}")

    def _index(self, name: str, what: str) -> int:
        index = self._names.get(name)
        if index is None:
            raise BadInput(f"there is no input for the {what} {name[:100]!r}; expected {self._expected()}")
        return index

    def _expected(self) -> str:
        return " and ".join(
            f"{tensor.name!r} (or 'input{index}')" if tensor.name != f"input{index}" else repr(tensor.name)
            for index, tensor in enumerate(self._inputs)
        )

    def _readable(self, tensor: Tensor) -> str:
        pictures = "image/jpeg, image/png, image/webp, " if _picture_shape(tensor) is not None else ""
        return f"{pictures}{media.JSON}, {media.NPY} or {media.CSV}"


class _Quick:
    """The way of the common case: JSON floats for the one input of rank 2, converted with the rest of their batch."""

    def __init__(self, names: set[str], size: int | None) -> None:
        self._names = names
        self._size = size
        self._row = msgspec.json.Decoder(list[float]).decode
        self._rows = msgspec.json.Decoder(list[list[float]]).decode
        self._object = msgspec.json.Decoder(dict[str, list[float]]).decode

    @staticmethod
    def of(signature: Signature, names: dict[str, int]) -> _Quick | None:
        """Return the quick way if the model has the shape for it."""
        if len(signature.inputs) != 1:
            return None
        (tensor,) = signature.inputs
        if len(tensor.shape) != 2 or not tensor.dtype.startswith("float") or tensor.shape[0] not in {None, 1}:
            return None
        return _Quick(set(names), tensor.shape[1])

    def read(self, data: bytes) -> Item | None:
        """Read the item, or ``None`` where there is anything out of the ordinary: the careful way says what."""
        try:
            if data[:1] == b"{":
                ((name, row),) = self._object(data).items()
                if name not in self._names:
                    return None
            elif data[:2] == b"[[":
                return self._several(self._rows(data))
            else:
                row = self._row(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        size = len(row)
        return Item(([row],), ((size,),), 1, True) if size == self._size or (size and self._size is None) else None

    def _several(self, rows: list[list[float]]) -> Item | None:
        size = len(rows[0])
        if any(len(row) != size for row in rows) or not size or self._size not in {None, size}:
            return None
        return Item((rows,), ((size,),), len(rows), False)


def _picture_shape(tensor: Tensor) -> tuple[int, int | None, int | None] | None:
    """Return channels, height and width of an input that takes a picture."""
    if len(tensor.shape) != 4 or tensor.shape[1] not in {1, 3}:
        return None
    channels, height, width = tensor.shape[1:]
    return channels or 3, height, width


def _literal(data: bytes, tensor: Tensor) -> Any:
    """Read JSON or, as clients of MMS send it, a Python literal."""
    try:
        return media.decode(data, media.JSON)
    except BadInput as fault:
        if len(data) > LITERAL_LIMIT:
            raise
        try:
            return ast.literal_eval(data.decode().strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise BadInput(f"the input {tensor.name!r}: {fault.message}") from None
