"""MXNet's ``symbol.json``: a network as a list of nodes, read from every version's dialect and written for 1.x.

A node of the operator ``null`` is a variable (an input, a parameter, a label). Edges name a node by its index and one
of its outputs. Versions differ in where attributes lie (``attrs``, since 1.0; ``attr``, 0.9 on; ``param`` before, when
``attr`` held the user's own notes) and in whether edges have a third element, a version that nobody needs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from forecastle.errors import BadArtifact
from forecastle.runtimes.mxnet.attributes import Attributes, format_attribute


class Edge(NamedTuple):
    """One output of one node."""

    node: int
    output: int = 0


class Node(NamedTuple):
    """A node; the nodes that its ``inputs`` name come before it."""

    op: str
    name: str
    attributes: Attributes
    inputs: tuple[Edge, ...]

    @property
    def is_variable(self) -> bool:
        """Whether a value is fed into it, rather than computed."""
        return self.op == "null"


class Symbol(NamedTuple):
    """A network: its nodes in an order they can be computed in, and the outputs it gives."""

    nodes: tuple[Node, ...]
    heads: tuple[Edge, ...]


class _RawNode(msgspec.Struct):
    op: str
    name: str
    inputs: list[list[int]]
    attrs: dict[str, str] | None = None
    attr: dict[str, str] | None = None
    param: dict[str, str] | None = None

    def attributes(self) -> dict[str, str]:
        for found in (self.attrs, self.param, self.attr):
            if found is not None:
                return found
        return {}


class _RawSymbol(msgspec.Struct):
    nodes: list[_RawNode]
    heads: list[list[int]]


def parse(data: bytes, origin: str) -> Symbol:
    """Read a ``symbol.json``; ``origin`` is the file's name for messages.

    Raises `BadArtifact` for what is not one: other JSON, an edge that points at no earlier node, no heads.
    """
    try:
        raw = msgspec.json.decode(data, type=_RawSymbol)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadArtifact(f"{origin} is no MXNet symbol: {error}") from error
    nodes: list[Node] = []
    for index, node in enumerate(raw.nodes):
        edges = _edges(node.inputs, index, f"{origin}: the node {node.name!r} (number {index})")
        if node.op == "null" and edges:
            raise BadArtifact(f"{origin}: the variable {node.name!r} has inputs")
        nodes.append(Node(node.op, node.name, Attributes(node.attributes()), edges))
    heads = _edges(raw.heads, len(nodes), f"{origin}: heads")
    if not heads:
        raise BadArtifact(f"{origin} has no heads: nothing says which nodes are the outputs")
    return Symbol(tuple(nodes), heads)


def _edges(raw: list[list[int]], limit: int, where: str) -> tuple[Edge, ...]:
    for edge in raw:
        if len(edge) not in {2, 3}:
            raise BadArtifact(f"{where} has an edge of {len(edge)} numbers where 2 or 3 are expected")
        if not (0 <= edge[0] < limit and edge[1] >= 0):
            raise BadArtifact(f"{where} refers to output {edge[1]} of node {edge[0]}, which does not come before it")
    return tuple(Edge(edge[0], edge[1]) for edge in raw)


class SymbolBuilder:
    """Writes a ``symbol.json`` node by node.

    ::

        builder = SymbolBuilder()
        data = builder.variable("data")
        weight = builder.variable("fc_weight")
        fc = builder.op("FullyConnected", "fc", [data, weight], num_hidden=10, no_bias=True)
        symbol_json = builder.write(fc)
    """

    def __init__(self) -> None:
        self._nodes: list[dict[str, object]] = []

    def variable(self, name: str) -> Edge:
        """A node whose value is fed or is a parameter."""
        return self._add("null", name, (), {})

    def op(self, op: str, name: str, inputs: Sequence[Edge], /, **attributes: object) -> Edge:
        """A node that computes ``op``; gives its first output (``edge._replace(output=1)`` is its second)."""
        return self._add(op, name, inputs, attributes)

    def write(self, *heads: Edge) -> bytes:
        """The file's bytes, with these outputs."""
        if not heads:
            raise ValueError("a symbol needs at least one output")
        return json.dumps(
            {
                "nodes": self._nodes,
                "arg_nodes": [index for index, node in enumerate(self._nodes) if node["op"] == "null"],
                "heads": [[*head, 0] for head in heads],
                "attrs": {"mxnet_version": ["int", 10901]},  # the version whose dialect this is
            },
            indent=1,
        ).encode()

    def _add(self, op: str, name: str, inputs: Sequence[Edge], attributes: dict[str, object]) -> Edge:
        node: dict[str, object] = {"op": op, "name": name, "inputs": [[*edge, 0] for edge in inputs]}
        if attributes:
            node["attrs"] = {key: format_attribute(value) for key, value in attributes.items()}
        self._nodes.append(node)
        return Edge(len(self._nodes) - 1)
