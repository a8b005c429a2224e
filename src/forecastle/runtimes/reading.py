"""From a request's parts to an item of a model with a signature: which part is which input, and how it is read."""

from __future__ import annotations

import ast
import math
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from forecastle import media
from forecastle.errors import BadInput, UnsupportedMediaType
from forecastle.messages import Part
from forecastle.models.signature import Signature, Tensor
from forecastle.runtimes.batching import Item
from forecastle.runtimes.convert import Array, to_array
from forecastle.runtimes.quick import Quick
from forecastle.runtimes.vision import decode_image, is_picture

LITERAL_LIMIT = 1 << 20
"""Bytes of a form value that are tried as a Python literal, as clients of MMS write them; JSON has no such limit."""

_MAGIC_NPY = b"\x93NUMPY"
_MAGIC_ZIP = b"PK\x03\x04"


class Reader:
    """Reads requests for one model."""

    def __init__(self, signature: Signature, columns: list[str] | None = None, *, missing: bool = False) -> None:
        self._inputs = signature.inputs
        self._missing = missing
        self._columns = columns or []
        self._pictures = signature.input_type.startswith("image/")
        self._names = {tensor.name: index for index, tensor in enumerate(signature.inputs)}
        for index in range(len(signature.inputs)):
            self._names.setdefault(f"input{index}", index)
        self._quick = Quick.of(signature, set(self._names))

    def read(self, parts: list[Part]) -> Item:
        """Read one request.

        Raises:
            BadInput: an input is missing, unknown, given twice or wrong; the message names it.
            UnsupportedMediaType: a part's content type cannot be read; the message lists those that can.
        """
        if len(parts) == 1:
            if self._quick is not None:
                item = self._quick.read(parts[0])
                if item is not None:
                    return item
            if not parts[0].name:
                return self.value(self._value(parts[0], self._inputs[0]))
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
        value = self._without_names(value)
        if self._missing:
            value = _filled(value)
        if isinstance(value, dict):
            return self._item(self._by_name(value))
        if len(self._inputs) != 1:
            raise BadInput(f"the model has {len(self._inputs)} inputs; expected an object with {self._expected()}")
        return self._item({0: value})

    def _without_names(self, value: Any) -> Any:
        """Turn records by column (``{"width": 1, …}``, or a list of them) into rows; leave anything else."""
        if isinstance(value, dict) and self._columns and not value.keys() & self._names.keys():
            return self._row(value, "the record")
        if isinstance(value, list) and self._columns and value and all(isinstance(record, dict) for record in value):
            return [self._row(record, f"record {index}") for index, record in enumerate(value)]
        return value

    def _row(self, record: dict[Any, Any], which: str) -> list[Any]:
        missing = [column for column in self._columns if column not in record]
        unknown = [str(key) for key in record if key not in self._columns]
        if missing or unknown:
            fault = f"lacks {missing[0]!r}" if missing else f"has {unknown[0][:100]!r}, which is no column"
            raise BadInput(f"{which} {fault}; expected {', '.join(self._columns)}")
        return [record[column] for column in self._columns]

    def _value(self, part: Part, tensor: Tensor) -> Any:
        """Decode one part for an input: to an array, nested lists, or (a raw body's) values by name."""
        if not part.data:
            raise BadInput(f"the input {tensor.name!r} is empty; expected {_readable(tensor)}")
        kind = media.parse(part.content_type).type
        if kind == media.BYTES:
            kind = self._sniff(part.data, tensor)
        if kind.startswith("image/") and (frame := _frame(tensor)) is not None:
            picture = decode_image(part.data, frame.height, frame.width, frame.channels, tensor.dtype)
            return picture.transpose(1, 2, 0) if frame.channels_last else picture
        if kind in {media.NPY, media.NPZ}:
            return media.decode(part.data, kind)
        if kind == media.CSV:
            rows = media.decode(part.data, part.content_type)
            # A column is a list where the input's rows are single values.
            return [cell for row in rows for cell in row] if len(tensor.shape) == 1 else rows
        if kind in {media.JSON, "text/plain"} or media.is_json(part.content_type):
            return parsed(part, tensor.name, literal=bool(part.name) or not media.is_json(part.content_type))
        raise UnsupportedMediaType(
            f"the input {tensor.name!r} cannot be read from {part.content_type}; expected {_readable(tensor)}"
        )

    def _sniff(self, data: bytes, tensor: Tensor) -> str:
        """Tell what a part is that has no content type, or that of any bytes, as a form's file often has."""
        if data.startswith(_MAGIC_NPY):
            return media.NPY
        if data.startswith(_MAGIC_ZIP):
            return media.NPZ
        if _frame(tensor) is None:
            return media.JSON
        if is_picture(data) or (self._pictures and data.lstrip()[:1] not in {b"[", b"{"}):
            return "image/*"
        return media.JSON

    def _item(self, values: dict[int, Any]) -> Item:
        missing = [tensor.name for index, tensor in enumerate(self._inputs) if index not in values]
        if missing:
            raise BadInput(f"the input {missing[0]!r} is missing; expected {self._expected()}")
        arrays: list[Array] = []
        singles: list[bool] = []
        rows: dict[str, int] = {}
        for index, tensor in enumerate(self._inputs):
            array, single = to_array(values[index], tensor)
            arrays.append(array)
            if tensor.shape:
                singles.append(single)
                rows[tensor.name] = array.shape[0]
        if len(set(rows.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in rows.items())
            raise BadInput(f"the inputs have different numbers of rows ({counts}); expected the same")
        shapes = tuple(array.shape[1:] for array in arrays)
        return Item(tuple(arrays), shapes, next(iter(rows.values()), 1), bool(singles) and all(singles))

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


def _filled(value: Any) -> Any:
    """Put NaN where a row of features has nothing."""
    if isinstance(value, list):
        return [_filled(row) for row in value]
    if isinstance(value, np.ndarray):
        return value
    return math.nan if value is None or value == "" else value


def _readable(tensor: Tensor) -> str:
    pictures = "image/jpeg, image/png, image/webp, " if _frame(tensor) is not None else ""
    return f"{pictures}{media.JSON}, {media.NPY} or {media.CSV}"


class _Frame(NamedTuple):
    """The pictures that an input takes."""

    channels: int
    height: int | None
    width: int | None
    channels_last: bool


@lru_cache(64)
def _frame(tensor: Tensor) -> _Frame | None:
    """Return what pictures an input takes: its shape is NCHW or NHWC, of 1 or 3 channels."""
    if len(tensor.shape) != 4 or tensor.dtype in {"str", "object"}:
        return None
    _, first, second, last = tensor.shape
    if first in {1, 3}:
        return _Frame(first, second, last, channels_last=False)
    return _Frame(last, first, second, channels_last=True) if last in {1, 3} else None


def parsed(part: Part, name: str, *, literal: bool) -> Any:
    """Read the JSON of an input or, as clients of MMS send it, a Python literal."""
    charset = media.parse(part.content_type).params.get("charset", "utf-8")
    try:
        return media.decode(part.data, f"{media.JSON}; charset={charset}")
    except BadInput as fault:
        if not literal or len(part.data) > LITERAL_LIMIT:
            raise
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python's opinion of a text's backslashes
                return ast.literal_eval(part.data.decode(charset).strip())
        except (ValueError, TypeError, SyntaxError, LookupError, RecursionError, MemoryError):
            raise BadInput(f"the input {name!r}: {fault.message}") from None
