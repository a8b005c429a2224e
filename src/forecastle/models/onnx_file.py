"""Telling an ONNX file from any other, without the onnx package and without reading its weights.

An ONNX file is one protobuf message, ``ModelProto`` (https://onnx.ai/onnx/intro/concepts.html): a sequence of fields,
each a tag (field number and wire type) and a value. The walk skips from field to field.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

_IR_VERSION = 1
_GRAPH = 7
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
# A model has a handful of fields and one for each function and note of metadata.
_MOST_FIELDS = 100_000


class _NotProtobuf(ValueError):
    """The bytes are no ModelProto; the text says why."""


def onnx_fault(path: Path) -> str | None:
    """Why the file is no complete ONNX model, or ``None`` if it is one; raises ``OSError`` if it cannot be read."""
    with path.open("rb") as file:
        try:
            _walk(file, os.fstat(file.fileno()).st_size)
        except _NotProtobuf as fault:
            return str(fault)
    return None


def _walk(file: IO[bytes], size: int) -> None:
    wire_types: dict[int, int] = {}
    for _ in range(_MOST_FIELDS):
        if file.tell() == size:
            break
        tag = _varint(file)
        field, wire_type = tag >> 3, tag & 7
        wire_types[field] = wire_type
        if wire_type == _VARINT:
            value = _varint(file)
            if field == _IR_VERSION and not 1 <= value <= 1000:
                raise _NotProtobuf(f"its IR version is {value}")
        elif wire_type == _LENGTH or wire_type in _FIXED:
            length = _varint(file) if wire_type == _LENGTH else _FIXED[wire_type]
            if file.tell() + length > size:
                raise _NotProtobuf(
                    f"it is cut off: field {field} ends {file.tell() + length - size} bytes after the end"
                )
            file.seek(length, os.SEEK_CUR)
        else:
            raise _NotProtobuf(f"byte {file.tell() - 1} starts no protobuf field")
    else:
        raise _NotProtobuf(f"it has more than {_MOST_FIELDS} fields")
    if wire_types.get(_IR_VERSION) != _VARINT or wire_types.get(_GRAPH) != _LENGTH:
        raise _NotProtobuf("it has no IR version or no graph")


def _varint(file: IO[bytes]) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise _NotProtobuf("it is cut off in the middle of a field")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise _NotProtobuf("it holds a number longer than protobuf's")
