"""The signature: a model's named, typed, shaped inputs and outputs, and their content types.

On disk it is MMS's ``signature.json``. MMS's manual wrote ``input`` and ``output``, its code wanted ``inputs`` and
``outputs``, and some archives say ``shape`` for ``data_shape``: all of them are read, the plural ones are written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from forecastle.errors import BadArtifact

JSON = "application/json"
JPEG = "image/jpeg"
_CONTENT_TYPES = (JPEG, JSON)

DTYPES = (
    *("float32", "float64", "float16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "str", "object"),
)
_LARGEST = 2**31 - 1
_SHOWN = 60
_SINGLE_QUOTED = re.compile(rb"[{\[,:]\s*'")


class Tensor(msgspec.Struct, frozen=True):
    """One input or output: its first axis is the batch; ``None`` stands for any size. ``dtype`` is numpy's name."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str = "float32"


class Signature(msgspec.Struct, frozen=True):
    """What a model takes and gives; ``input_type`` and ``output_type`` are content types, as in signature.json."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    input_type: str = JSON
    output_type: str = JSON


def read_signature(path: Path) -> Signature:
    """The signature in a file; as ``parse_signature``, with the path as origin."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadArtifact(f"{path} cannot be read: {error.strerror}") from None
    return parse_signature(data, str(path))


def parse_signature(data: bytes, origin: str) -> Signature:
    """The signature that a ``signature.json`` holds.

    ``origin`` names the file in messages. A size of 0 means any and becomes ``None``. Absent outputs are ``()``, an
    absent ``output_type`` is JSON, an absent ``dtype`` is float32; unknown keys are left alone.

    Raises:
        BadArtifact: it is not JSON, or a key is missing or wrong; the message names the key, what was found there and
            what was expected.
    """
    document = _decode(data, origin)
    if not isinstance(document, dict):
        raise BadArtifact(f"{origin} holds {_show(document)}; expected a JSON object with inputs and input_type")
    key, inputs = _tensors(document, "inputs", "input", origin)
    if not inputs:
        found = "an empty list" if key in document else f"missing (found the keys: {', '.join(document) or 'none'})"
        raise _fault(origin, key, found, 'a list of {"data_name": …, "data_shape": […]}, one for each input')
    _, outputs = _tensors(document, "outputs", "output", origin)
    return Signature(
        inputs=inputs,
        outputs=outputs,
        input_type=_content_type(document, "input_type", None, origin),
        output_type=_content_type(document, "output_type", JSON, origin),
    )


def format_signature(signature: Signature) -> bytes:
    """The ``signature.json`` of a signature: what ``parse_signature`` reads back as an equal one."""
    document = {
        "inputs": [_entry(tensor) for tensor in signature.inputs],
        "input_type": signature.input_type,
        "outputs": [_entry(tensor) for tensor in signature.outputs],
        "output_type": signature.output_type,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _entry(tensor: Tensor) -> dict[str, Any]:
    entry: dict[str, Any] = {"data_name": tensor.name, "data_shape": [size or 0 for size in tensor.shape]}
    if tensor.dtype != "float32":
        entry["dtype"] = tensor.dtype
    return entry


def _decode(data: bytes, origin: str) -> Any:
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if _SINGLE_QUOTED.search(data):
            raise BadArtifact(
                f"{origin} is not JSON: names and texts stand in single quotes ('); JSON wants double quotes (\"), "
                "so replace every ' by \""
            ) from None
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadArtifact(f"{origin} is not JSON: {reason}") from None


def _tensors(document: dict[str, Any], plural: str, singular: str, origin: str) -> tuple[str, tuple[Tensor, ...]]:
    """The tensors under either spelling of the key, and the spelling that was seen."""
    if plural in document and singular in document:
        raise BadArtifact(f"{origin} has both {plural} and {singular}; expected one of them")
    key = singular if singular in document else plural
    entries = document.get(key, [])
    if not isinstance(entries, list):
        raise _fault(origin, key, _show(entries), 'a list of {"data_name": …, "data_shape": […]}')
    tensors = tuple(_tensor(entry, f"{key}[{index}]", origin) for index, entry in enumerate(entries))
    names = [tensor.name for tensor in tensors]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise _fault(origin, f"{key}[{index}].data_name", f"{_show(name)} a second time", "each name once")
    return key, tensors


def _tensor(entry: Any, where: str, origin: str) -> Tensor:
    if not isinstance(entry, dict):
        raise _fault(origin, where, _show(entry), '{"data_name": …, "data_shape": […]}')
    name = entry.get("data_name")
    if not isinstance(name, str) or not name:
        found = _show(name) if "data_name" in entry else "missing"
        raise _fault(origin, f"{where}.data_name", found, "the tensor's name as a text")
    if "data_shape" in entry and "shape" in entry:
        raise BadArtifact(f"{origin}: {where} has both data_shape and shape; expected one of them")
    key = "shape" if "shape" in entry else "data_shape"
    shape = entry.get(key)
    if not isinstance(shape, list) or not shape:
        found = _show(shape) if key in entry else "missing"
        raise _fault(origin, f"{where}.{key}", found, "a list of sizes, the batch first: [0, 3, 224, 224]")
    for index, size in enumerate(shape):
        # JSON's true is an int to Python, and is no size.
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST:
            raise _fault(
                origin, f"{where}.{key}[{index}]", _show(size), f"a whole number up to {_LARGEST}, 0 for any size"
            )
    dtype = entry.get("dtype", "float32")
    if dtype not in DTYPES:
        raise _fault(origin, f"{where}.dtype", _show(dtype), f"one of {', '.join(DTYPES)}")
    return Tensor(name, tuple(size or None for size in shape), dtype)


def _content_type(document: dict[str, Any], key: str, default: str | None, origin: str) -> str:
    found = document.get(key, default)
    if isinstance(found, str) and found.strip().lower() in _CONTENT_TYPES:
        return found.strip().lower()
    raise _fault(origin, key, _show(found) if key in document else "missing", f'"{JPEG}" or "{JSON}"')


def _fault(origin: str, key: str, found: str, expected: str) -> BadArtifact:
    return BadArtifact(f"{origin}: {key} is {found}; expected {expected}")


def _show(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
