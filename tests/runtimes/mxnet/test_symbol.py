from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadArtifact
from forecastle.runtimes.mxnet.symbol import Edge, SymbolBuilder, parse


def node(op: str, name: str, *inputs: list[int], **more: Any) -> dict[str, Any]:
    return {"op": op, "name": name, "inputs": list(inputs), **more}


def symbol(*nodes: dict[str, Any], heads: Any = ([1, 0],)) -> bytes:
    return json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": list(heads)}).encode()


DATA = node("null", "data")


@pytest.mark.parametrize("key", ["attrs", "attr", "param"])
def test_attributes_are_found_under_the_key_of_every_version(key: str) -> None:
    parsed = parse(symbol(DATA, node("relu", "r", [0, 0], **{key: {"a": "1"}})), "s")
    assert parsed.nodes[1].attributes.text("a") == "1"


def test_beside_param_the_key_attr_holds_only_notes() -> None:
    parsed = parse(symbol(DATA, node("relu", "r", [0, 0], param={}, attr={"a": "1"})), "s")
    assert not parsed.nodes[1].attributes.has("a")


def test_edges_have_two_or_three_numbers() -> None:
    parsed = parse(symbol(DATA, node("relu", "r", [0, 2, 1]), heads=[[1, 0, 0]]), "s")
    assert parsed.nodes[1].inputs == (Edge(0, 2),)
    assert parsed.heads == (Edge(1, 0),)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"not json", "m-symbol.json is no MXNet symbol"),
        (b"[]", "is no MXNet symbol: Expected `object`"),
        (b'{"nodes": [], "heads": 3}', r"is no MXNet symbol: Expected `array`.*heads"),
        (b'{"nodes": [{"op": "null"}], "heads": []}', "missing required field `name`"),
        (b"\xff\xfe", "is no MXNet symbol"),
        (b'{"nodes":' + b"[" * 100_000, "is no MXNet symbol"),
        (symbol(DATA, heads=[]), "has no heads"),
        (symbol(DATA, heads=[[1, 0]]), r"heads refers to output 0 of node 1"),
        (symbol(DATA, node("relu", "r", [1, 0])), r"the node 'r' \(number 1\) refers to output 0 of node 1"),
        (symbol(DATA, node("relu", "r", [2, 0]), node("relu", "q", [1, 0])), "node 2, which does not come before it"),
        (symbol(DATA, node("relu", "r", [-1, 0])), "output 0 of node -1"),
        (symbol(DATA, node("relu", "r", [0, -1])), "output -1 of node 0"),
        (symbol(DATA, node("relu", "r", [0])), "an edge of 1 numbers"),
        (symbol(DATA, node("null", "v", [0, 0])), "the variable 'v' has inputs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_symbol_is_refused_by_name(data: bytes, problem: str) -> None:
    with pytest.raises(BadArtifact, match=problem):
        parse(data, "m-symbol.json")


@given(st.binary())
def test_any_bytes_are_a_symbol_or_a_bad_artifact(data: bytes) -> None:
    with pytest.raises(BadArtifact):
        parse(data, "s")


def test_what_is_built_is_read_back() -> None:
    builder = SymbolBuilder()
    data, weight = builder.variable("data"), builder.variable("w")
    conv = builder.op("Convolution", "conv", [data, weight], kernel=(3, 3), no_bias=True, name="kept", op="kept")
    parts = builder.op("SliceChannel", "parts", [conv], num_outputs=2)
    parsed = parse(builder.write(parts, parts._replace(output=1)), "s")
    assert [(node.op, node.name, node.inputs) for node in parsed.nodes] == [
        ("null", "data", ()),
        ("null", "w", ()),
        ("Convolution", "conv", ((0, 0), (1, 0))),
        ("SliceChannel", "parts", ((2, 0),)),
    ]
    assert parsed.nodes[2].attributes.integers("kernel") == (3, 3)
    assert parsed.nodes[2].attributes.flag("no_bias")
    assert parsed.heads == ((3, 0), (3, 1))


def test_what_is_built_has_what_mxnet_asks_for() -> None:
    builder = SymbolBuilder()
    written = json.loads(builder.write(builder.op("relu", "r", [builder.variable("data")])))
    assert written["arg_nodes"] == [0]
    assert written["heads"] == [[1, 0, 0]]
    assert written["nodes"][1]["inputs"] == [[0, 0, 0]]


def test_a_symbol_without_outputs_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="at least one output"):
        SymbolBuilder().write()
