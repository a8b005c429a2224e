"""The bodies of Clipper's query contract: wrappers are read here; what they hold is checked, and goes on as it came."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from forecastle.errors import BadInput
from forecastle.messages import Part

_FLOAT = 3.4028234663852886e38  # the largest float of 32 bits


class JsonError(BadInput):
    """A body that is no JSON, or not the JSON that was asked for."""


class Query(NamedTuple):
    """Inputs to predict for, and the version that is to do it (empty for the current)."""

    inputs: list[Part]
    version: str


class Feedback(NamedTuple):
    """An input, and what would have been right for it, in JSON."""

    input: Part
    label: bytes


class _Query(msgspec.Struct):
    input: Raw | UnsetType = UNSET
    input_batch: Raw | UnsetType = UNSET
    version: Raw | UnsetType = UNSET


class _Feedback(msgspec.Struct):
    input: Raw | UnsetType = UNSET
    label: Raw | UnsetType = UNSET


_read_query = msgspec.json.Decoder(_Query).decode
_read_feedback = msgspec.json.Decoder(_Feedback).decode
_read_list = msgspec.json.Decoder(list[Raw]).decode
_read_text = msgspec.json.Decoder(str).decode

_NUMBERS: dict[str, Callable[[bytes], object]] = {
    "integers": msgspec.json.Decoder(list[Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]]).decode,
    "floats": msgspec.json.Decoder(list[Annotated[float, Meta(ge=-_FLOAT, le=_FLOAT)]]).decode,
    "doubles": msgspec.json.Decoder(list[float]).decode,
}
_EXPECTED = {
    "integers": "an array of integers of 32 bits such as [1, 2]",
    "floats": "an array of numbers such as [1.0, 2]",
    "doubles": "an array of numbers such as [1.0, 2]",
    "strings": 'a string such as "text"',
    "bytes": 'a string of base64 such as "aGVsbG8="',
    "json": "any JSON value",
}


def parse_query(body: bytes, input_type: str) -> Query:
    """Read the body of a prediction; ``input`` counts where both are there.

    Raises:
        JsonError: it is none; the message says what was found and what was expected.
    """
    found = _decode(_read_query, body, input_type)
    version = ""
    if not isinstance(found.version, UnsetType):
        try:
            version = _read_text(found.version)
        except msgspec.DecodeError:
            raise JsonError("Type mismatch! JSON key version expected type String") from None
        if not version:
            raise JsonError("version is an empty string: leave it out for the current version")
    if not isinstance(found.input, UnsetType):
        return Query([_part(found.input, input_type, "input")], version)
    if isinstance(found.input_batch, UnsetType):
        wanted = f'{{"input": {_EXPECTED[input_type]}}} or {{"input_batch": an array of them}}'
        raise JsonError(f"JSON object does not have required keys input or input_batch. Expected JSON schema: {wanted}")
    try:
        batch = _read_list(found.input_batch)
    except msgspec.DecodeError:
        raise JsonError("Type mismatch! JSON key input_batch expected type Array") from None
    return Query([_part(raw, input_type, f"input_batch[{i}]") for i, raw in enumerate(batch)], version)


def parse_feedback(body: bytes, input_type: str) -> Feedback:
    """Read the body of an update.

    Raises:
        JsonError: it is none.
    """
    found = _decode(_read_feedback, body, input_type)
    if isinstance(found.input, UnsetType) or isinstance(found.label, UnsetType):
        raise JsonError(
            "JSON object does not have required keys input and label. Expected JSON schema: "
            f'{{"uid": anything, "input": {_EXPECTED[input_type]}, "label": what would have been right}}'
        )
    return Feedback(_part(found.input, input_type, "input"), bytes(found.label))


def _decode(read: Callable[[bytes], Any], body: bytes, input_type: str) -> Any:
    try:
        if not body.isascii():
            body.decode()  # strings are skipped unread at first
        return read(body)
    except UnicodeDecodeError:
        raise JsonError("Error parsing JSON: JSON parse error: the body is not UTF-8") from None
    except RecursionError:
        raise JsonError("Error parsing JSON: JSON parse error: the body is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise JsonError(
            f'Error parsing JSON: JSON parse error: {error}. Expected JSON schema: {{"input": {_EXPECTED[input_type]}}}'
        ) from None


def _part(raw: Raw, input_type: str, where: str) -> Part:
    expected = _EXPECTED[input_type]
    if input_type in _NUMBERS:
        return Part("", "application/json", _checked(_NUMBERS[input_type], raw, where, expected))
    if input_type == "json":
        return Part("", "application/json", bytes(raw))
    if input_type == "strings":
        return Part("", "application/json", _checked(_read_text, raw, where, expected))
    _checked(_read_text, raw, where, expected)
    try:
        return Part("", "application/octet-stream", base64.b64decode(_read_text(raw), validate=True))
    except (binascii.Error, ValueError) as error:
        raise JsonError(f"{where} is no valid base64: {error}") from None


def _checked(read: Callable[[bytes], object], raw: Raw, where: str, expected: str) -> bytes:
    """Return the bytes of a value that can be read as it should be; a copy, so that the whole body need not be kept."""
    value = bytes(raw)
    try:
        read(value)
    except msgspec.DecodeError as error:
        key = where.partition("[")[0]
        raise JsonError(f"Type mismatch! JSON key {key} expected {expected}; in {where}: {error}") from None
    return value
