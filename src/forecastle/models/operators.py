"""Which operators a network uses, and how often: read from its file, without the library that runs it."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from forecastle.errors import BadArtifact

_MODEL_GRAPH = 7
_GRAPH_NODE = 1
_NODE_OP, _NODE_ATTRIBUTE, _NODE_DOMAIN = 4, 5, 7
_ATTRIBUTE_GRAPHS = {6, 11}
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 50


class _Node(msgspec.Struct):
    op: str


class _Symbol(msgspec.Struct):
    nodes: list[_Node]
    attrs: dict[str, Any] = {}


def of_symbol(path: Path) -> dict[str, int]:
    """Return the operators of an MXNet symbol, the most frequent first.

    Raises:
        BadArtifact: it is no symbol.
    """
    return _ordered(Counter(node.op for node in _read_symbol(path).nodes if node.op != "null"))


def mxnet_version(path: Path) -> float | None:
    """Return the version of MXNet that wrote a symbol, as a manifest has it (1.9), or ``None`` if it does not say.

    Raises:
        BadArtifact: it is no symbol.
    """
    match _read_symbol(path).attrs.get("mxnet_version"):
        case ["int", int(version)] if version > 0:
            return float(f"{version // 10000}.{version // 100 % 100}")
        case _:
            return None


def of_onnx(path: Path) -> dict[str, int]:
    """Return the operators of an ONNX model, the most frequent first; those of another domain with it in front.

    Raises:
        BadArtifact: its graph is broken.
    """
    with path.open("rb") as file:
        message = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # so that no weight is read
    try:
        return _ordered(Counter(_operators(message, _MODEL_GRAPH, _DEEPEST)))
    except (IndexError, UnicodeDecodeError, RecursionError):
        raise BadArtifact(f"{path.name} is a broken ONNX model: its graph cannot be read") from None


def _operators(message: memoryview, graph_field: int, depth: int) -> Iterator[str]:
    """The operators of each graph in a message, and of the graphs inside these."""
    if depth == 0:
        raise RecursionError
    for field, graph in _fields(message):
        if field != graph_field:
            continue
        for kind, node in _fields(graph):
            if kind == _GRAPH_NODE:
                yield from _of_node(node, depth)


def _of_node(node: memoryview, depth: int) -> Iterator[str]:
    name = domain = ""
    for field, value in _fields(node):
        if field == _NODE_OP:
            name = str(value, "utf-8")
        elif field == _NODE_DOMAIN:
            domain = str(value, "utf-8")
        elif field == _NODE_ATTRIBUTE:
            for graphs in _ATTRIBUTE_GRAPHS:
                yield from _operators(value, graphs, depth - 1)
    yield f"{domain}.{name}" if domain not in {"", "ai.onnx"} else name


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message that have a length; the others are skipped. A broken one raises ``IndexError``."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in {_FIXED32, _FIXED64}:
            at += 4 if kind == _FIXED32 else 8
        elif kind == _LENGTH:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise IndexError
            yield tag >> 3, message[at : at + length]
            at += length
        else:
            raise IndexError


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError


def _read_symbol(path: Path) -> _Symbol:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Symbol)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadArtifact(f"{path.name} is no MXNet symbol: {error}") from None


def _ordered(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda entry: (-entry[1], entry[0])))
