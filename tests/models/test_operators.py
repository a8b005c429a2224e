from __future__ import annotations

import contextlib
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from forecastle.errors import BadArtifact
from forecastle.models import operators

GRAPHS = Path(__file__).parents[1] / "data" / "graphs"


def conditional() -> bytes:
    """A model with graphs inside its graph, and an operator of another domain."""
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    branches = [
        helper.make_graph([helper.make_node(op, ["x"], ["y"]) for op in ops], "g", [], [out])
        for ops in (["Relu"], ["Exp"])
    ]
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", scale=[1.0]),
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Relu", ["y"], ["z"], domain="ai.onnx"),
    ]
    return bytes(helper.make_model(helper.make_graph(nodes, "g", [], [out])).SerializeToString())


def test_an_onnx_model_s_operators_are_those_of_all_its_graphs(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(conditional())
    assert operators.of_onnx(path) == {"Relu": 2, "Exp": 1, "If": 1, "ai.onnx.ml.Scaler": 1}


def test_weights_are_skipped_and_the_count_is_the_onnx_package_s(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    weights = helper.make_tensor("w", TensorProto.FLOAT, [1000], [1.0] * 1000)
    nodes = [helper.make_node("Add", ["w", "w"], [f"y{index}"]) for index in range(200)]
    graph = helper.make_graph(nodes, "g", [], [], [weights])
    onnx.save(helper.make_model(graph), path)
    assert operators.of_onnx(path) == {"Add": len(onnx.load(path).graph.node)}


@given(st.data())
def test_a_broken_graph_is_refused_or_read_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "broken.onnx"
    content = bytearray(conditional())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    with contextlib.suppress(BadArtifact):
        operators.of_onnx(path)


def test_a_symbol_s_operators_leave_its_variables_out() -> None:
    found = operators.of_symbol(GRAPHS / "caffenet" / "m-symbol.json")
    assert found["Convolution"] == 3
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert "null" not in found


@pytest.mark.parametrize(
    ("attributes", "version"),
    [
        ("", None),
        (', "attrs": {"mxnet_version": ["int", 10901]}', 1.9),
        (', "attrs": {"mxnet_version": ["int", 1100]}', 0.11),
        (', "attrs": {"mxnet_version": 10901}', None),
    ],
)
def test_a_symbol_tells_the_version_that_wrote_it(tmp_path: Path, attributes: str, version: float | None) -> None:
    path = tmp_path / "m-symbol.json"
    path.write_text(f'{{"nodes": [], "heads": []{attributes}}}')
    assert operators.mxnet_version(path) == version


def test_what_is_no_symbol_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m-symbol.json"
    path.write_text("{}")
    with pytest.raises(BadArtifact, match=r"m-symbol\.json is no MXNet symbol: .*nodes"):
        operators.of_symbol(path)
