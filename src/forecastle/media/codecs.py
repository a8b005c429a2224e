"""The codecs: from bytes to a value and back, by content type. The package's docstring is their table."""

from __future__ import annotations

import codecs
import csv
import importlib
import importlib.util
import io
import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import msgspec

from forecastle.errors import BadInput, BadOutput
from forecastle.media.types import BYTES, CSV, JSON, NPY, NPZ, TEXT, is_json, parse

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
"""Whether numpy is installed. It is imported by whoever makes or reads an array: a model that does neither saves it."""

_CHARSETS = ("utf-8", "utf-16", "utf-32", "ascii", "iso8859", "cp125", "koi8", "shift_jis", "euc_", "gb", "big5")


def decode(data: bytes, content_type: str) -> Any:
    """Turn a body into a value by its content type, as the module's table says.

    Raises:
        BadInput: the bytes are not what the content type says; the message says what is wrong, and where.
    """
    return _decoder(content_type)(data)


@lru_cache(256)
def _decoder(content_type: str) -> Callable[[bytes], Any]:
    media_type = parse(content_type)
    charset = media_type.params.get("charset", "utf-8")
    if is_json(content_type):
        return _json if _is_utf8(charset) else lambda data: _json(_text(data, charset).encode())
    if media_type.type in {CSV, "application/csv"}:
        return lambda data: _csv(_text(data, charset))
    if HAS_NUMPY and media_type.type == NPY:
        return lambda data: _npy().read(data)
    if HAS_NUMPY and media_type.type == NPZ:
        return lambda data: _npy().read_archive(data)
    if media_type.type.startswith("text/"):
        return lambda data: _text(data, charset)
    return lambda data: data


_JSON_DECODER = msgspec.json.Decoder()


def _json(data: bytes) -> Any:
    try:
        return _JSON_DECODER.decode(data)
    except RecursionError:
        raise BadInput("the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if data.startswith(codecs.BOM_UTF8):
            return _json(data[len(codecs.BOM_UTF8) :])
        if not data.strip():
            raise BadInput("the body is empty; expected JSON") from None
        reason = str(error).removeprefix("JSON is malformed: ").replace("Input data was truncated", "it ends too early")
        where = "" if "(byte" in reason else f" ({len(data)} bytes were read)"
        raise BadInput(f"the body is not JSON: {reason}{where}") from None


def _csv(text: str) -> list[list[float | str]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [[_cell(cell) for cell in row] for row in reader if row]
    except csv.Error as error:
        raise BadInput(f"the body is not CSV: {error} (line {reader.line_num})") from None


def _cell(cell: str) -> float | str:
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def _text(data: bytes, charset: str) -> str:
    try:
        known = codecs.lookup(charset).name.startswith(_CHARSETS)
    except (LookupError, ValueError):
        known = False
    if not known:
        raise BadInput(f"the charset {charset!r} is unknown; send utf-8")
    try:
        return data.decode("utf-8-sig" if _is_utf8(charset) else charset)
    except UnicodeDecodeError as error:
        raise BadInput(f"the body is not {charset} text: {error.reason} at byte {error.start}") from None


def _is_utf8(charset: str) -> bool:
    return charset.lower() in {"utf-8", "utf8"}


def offers(value: Any) -> tuple[str, ...]:
    """Say which content types a value can be written as, preferred first.

    Only the first element of a list is looked at: ``encode`` is what finds that another one does not fit.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return (BYTES,)
    if isinstance(value, str):
        return (JSON, TEXT)
    np = sys.modules.get("numpy")
    if np and isinstance(value, np.ndarray):
        plain = value.dtype.kind in "biufUS"
        return (JSON, *([NPY] if plain else []), *([CSV] if plain and value.ndim in {1, 2} else []))
    if np and isinstance(value, dict) and value:
        return (JSON, NPZ) if all(isinstance(array, np.ndarray) for array in value.values()) else (JSON,)
    depth, leaf = 0, value
    while isinstance(leaf, list | tuple) and leaf:
        depth, leaf = depth + 1, leaf[0]
    table = depth in {1, 2} and isinstance(leaf, float | int | str)
    return (JSON, *([CSV] if table else []), *([NPY] if HAS_NUMPY and depth and isinstance(leaf, float | int) else []))


def encode(value: Any, content_type: str) -> bytes:
    """Write a value as a content type; the reverse of ``decode``.

    Raises:
        BadOutput: the value cannot be written so.
    """
    try:
        if content_type == JSON or is_json(content_type):
            return _JSON_ENCODER.encode(value)
        media_type = parse(content_type)
        charset = media_type.params.get("charset", "utf-8")
        if media_type.type in {CSV, "application/csv"}:
            return _written_csv(value).encode(charset)
        if HAS_NUMPY and media_type.type == NPY:
            return cast(bytes, _npy().write(value))
        if HAS_NUMPY and media_type.type == NPZ:
            return cast(bytes, _npy().write_archive(value))
        if media_type.type.startswith("text/") and isinstance(value, str):
            return value.encode(charset)
    except (TypeError, ValueError, LookupError, RecursionError, OverflowError) as error:
        raise BadOutput(
            f"the prediction ({type(value).__name__}) cannot be written as {content_type}: {error}"
        ) from error
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise BadOutput(f"the prediction ({type(value).__name__}) cannot be written as {content_type}")


def _npy() -> Any:
    return importlib.import_module("forecastle.media.npy")


def _plain(value: Any) -> Any:
    """Turn what msgspec does not know into what it does. Where numpy was not imported, nothing is numpy's."""
    np = sys.modules.get("numpy")
    if np and isinstance(value, np.ndarray):
        return value.tolist()
    if np and isinstance(value, np.generic):
        # A long double's item() is itself.
        return float(value) if isinstance(value, np.floating) else value.item()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_JSON_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def _written_csv(value: Any) -> str:
    """Write rows, or a flat list as a column."""
    rows = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(rows, list | tuple):
        raise TypeError("expected a list of rows")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [_written_cell(cell) for cell in (row if isinstance(row, list | tuple) else (row,))] for row in rows
    )
    return text.getvalue()


def _written_cell(value: Any) -> Any:
    np = sys.modules.get("numpy")
    if np and isinstance(value, np.generic):
        value = _plain(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | str):
        return value
    raise TypeError(f"a cell holds {type(value).__name__}")
