from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadArtifact, LoadFailed, SourceNotFound
from forecastle.runtimes.mxnet.importer import to_onnx
from forecastle.runtimes.mxnet.params import load
from forecastle.runtimes.mxnet.symbol import SymbolBuilder
from runtimes.mxnet.converted import run

GRAPHS = Path(__file__).parents[2] / "data/graphs"
BATCH_AXIS = {"rnn_state": 1, "rnn_state_cell": 1}
Array = npt.NDArray[Any]


def reference(name: str) -> tuple[dict[str, Array], dict[str, Array]]:
    with np.load(GRAPHS / name / "ref.npz") as file:
        inputs = {key[3:]: file[key] for key in file.files if key.startswith("in_")}
        return inputs, {key: file[key] for key in file.files if key.startswith("out_")}


def convert(name: str, inputs: dict[str, Array]) -> onnx.ModelProto:
    shapes = {
        key: tuple(None if axis == BATCH_AXIS.get(key, 0) else size for axis, size in enumerate(array.shape))
        for key, array in inputs.items()
    }
    return to_onnx(GRAPHS / name / "m-symbol.json", load(GRAPHS / name / "m-0000.params"), shapes)


NETWORKS = ["caffenet", "fcn", "inception_bn", "lstm_ptb", "mobilenet0.25", "rnn_lstm"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_answers_as_mxnet_does_in_any_batch(name: str) -> None:
    inputs, expected = reference(name)
    model = convert(name, inputs)
    rows = len(expected["out_0"]) // inputs["data"].shape[0]  # a language model gives one for each word
    for batch in ([0], list(range(inputs["data"].shape[0])), [0, 0, 0]):
        taken = {key: np.take(array, batch, BATCH_AXIS.get(key, 0)) for key, array in inputs.items()}
        (answer,) = run(model, taken).values()
        wanted = np.concatenate([expected["out_0"][item * rows : (item + 1) * rows] for item in batch])
        np.testing.assert_allclose(answer, wanted, rtol=0, atol=1e-5)


def test_squeezenet_answers_as_mxnet_does() -> None:
    draw = np.random.RandomState(7)  # drawn as they were for the reference: exact on every machine
    params = {}
    for name, shape in json.loads((GRAPHS / "squeezenet1.1/shapes.json").read_text()).items():
        scale = (6 / np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0.1
        params[name] = (draw.uniform(-1, 1, shape) * scale).astype(np.float32)
    data = draw.uniform(-1, 1, (3, 3, 224, 224)).astype(np.float32)
    model = to_onnx(GRAPHS / "squeezenet1.1/m-symbol.json", params, {"data": (None, 3, 224, 224)})
    answer = run(model, {"data": data})["softmax_output"]
    np.testing.assert_allclose(answer, reference("squeezenet1.1")[1]["out_0"], rtol=0, atol=1e-5)


def test_a_file_from_before_0_9_answers_like_its_successor() -> None:
    """Its attributes lie under ``param``, its edges are pairs, and the statistics of BatchNorm are not in the graph."""
    inputs, expected = reference("inception_bn")
    document = json.loads((GRAPHS / "inception_bn/m-symbol.json").read_text())
    kept = [i for i, node in enumerate(document["nodes"]) if not node["name"].endswith(("moving_mean", "moving_var"))]
    place = {old: new for new, old in enumerate(kept)}
    nodes = []
    for node in (document["nodes"][i] for i in kept):
        edges = [[place[edge[0]], edge[1]] for edge in node["inputs"] if edge[0] in place]
        param = {} if node["op"] == "null" else node.get("attrs", {})
        old = {"op": node["op"], "param": param, "name": node["name"], "inputs": edges, "backward_source_id": -1}
        nodes.append({**old, "attr": {"lr_mult": "2.0"}})
    symbol = json.dumps({"nodes": nodes, "arg_nodes": [], "heads": [[place[document["heads"][0][0]], 0]]}).encode()
    model = to_onnx(symbol, load(GRAPHS / "inception_bn/m-0000.params"), {"data": (None, 3, 96, 96)})
    np.testing.assert_allclose(run(model, inputs)["softmax_output"], expected["out_0"], rtol=0, atol=1e-5)


def test_weights_are_initializers_and_the_batch_is_free() -> None:
    model = convert("mobilenet0.25", reference("mobilenet0.25")[0])
    (data,) = model.graph.input
    assert data.name == "data"
    assert [size.dim_value for size in data.type.tensor_type.shape.dim] == [0, 3, 96, 96]
    assert [output.name for output in model.graph.output] == ["softmax_output"]
    assert model.opset_import[0].version == 17


def test_a_deep_network_converts_in_a_fraction_of_a_second() -> None:
    began = time.perf_counter()
    convert("mobilenet0.25", reference("mobilenet0.25")[0])
    assert time.perf_counter() - began < 1


def small(op: str = "FullyConnected", **attributes: object) -> bytes:
    builder = SymbolBuilder()
    inputs = [builder.variable(name) for name in ("data", "fc_weight", "fc_bias")]
    label = builder.op("Reshape", "flat_label", [builder.variable("softmax_label")], shape=(-1,))
    dense = builder.op(op, "fc", inputs, **(attributes or {"num_hidden": 2}))
    return builder.write(builder.op("SoftmaxOutput", "softmax", [dense, label]))


PARAMS: dict[str, Array] = {"arg:fc_weight": np.ones((2, 3), np.float32), "arg:fc_bias": np.zeros(2, np.float32)}
INPUTS = {"data": (None, 3)}


def test_labels_and_what_leads_to_them_are_left_out() -> None:
    model = to_onnx(small(), PARAMS, INPUTS)
    assert [value.name for value in model.graph.input] == ["data"]
    assert run(model, {"data": np.zeros((4, 3))})["softmax_output"].tolist() == [[0.5, 0.5]] * 4


def test_parameters_of_other_types_are_served_in_float32() -> None:
    params = {name: array.astype(np.float16) for name, array in PARAMS.items()}
    assert run(to_onnx(small(), params, INPUTS), {"data": np.zeros((1, 3))})["softmax_output"].dtype == np.float32


def test_parameters_that_nothing_uses_are_left_out() -> None:
    model = to_onnx(small(), {**PARAMS, "arg:left_over": np.zeros(9)}, INPUTS)
    assert {tensor.name for tensor in model.graph.initializer} == {"fc_weight", "fc_bias"}


def test_missing_parameters_are_all_named() -> None:
    with pytest.raises(BadArtifact, match="needs the variable 'fc_weight', 'fc_bias', which is neither"):
        to_onnx(small(), {}, INPUTS)


def test_an_input_that_is_no_variable_is_named_with_those_there_are() -> None:
    with pytest.raises(BadArtifact, match=r"has no input 'image': its variables .* 'data', 'softmax_label'"):
        to_onnx(small(), PARAMS, {"image": (None, 3)})


def test_an_input_that_has_a_parameter_is_refused() -> None:
    with pytest.raises(BadArtifact, match="has no input 'fc_weight'"):
        to_onnx(small(), PARAMS, {**INPUTS, "fc_weight": (2, 3)})


def test_a_parameter_of_the_wrong_shape_is_refused_by_the_name_of_its_node() -> None:
    with pytest.raises(BadArtifact, match=r"the node 'fc' \(FullyConnected\) cannot be read: its weight has 3 columns"):
        to_onnx(small(), PARAMS, {"data": (None, 4)})
    with pytest.raises(BadArtifact, match=r"the node 'fc' .* its bias has the shape \(5,\), where \(2,\) is expected"):
        to_onnx(small(), {**PARAMS, "arg:fc_bias": np.zeros((5,))}, INPUTS)


def test_all_unsupported_operators_are_named_at_once() -> None:
    builder = SymbolBuilder()
    first = builder.op("Custom", "proposal", [builder.variable("data")], op_type="Proposal")
    second = builder.op("_contrib_box_nms", "nms", [builder.op("relu", "r", [first])])
    with pytest.raises(LoadFailed) as failure:
        to_onnx(builder.write(second, builder.op("Custom", "again", [second])), {}, INPUTS)
    assert failure.value.message == (
        "the symbol cannot be served: the operator 'Custom' (node 'proposal'), the operator '_contrib_box_nms' "
        "(node 'nms') is not supported by the built-in reader of MXNet models, and the MXNet engine itself is not "
        "available here"
    )


def test_all_unsupported_attributes_are_named_at_once() -> None:
    builder = SymbolBuilder()
    data = builder.variable("data")
    pool = builder.op("Pooling", "pool", [data], kernel=(2, 2), layout="NHWC")
    other = builder.op("LeakyReLU", "leak", [data], act_type="mish")
    after = builder.op("relu", "after", [pool])
    with pytest.raises(
        LoadFailed, match=r"layout=NHWC \(node 'pool', Pooling\), act_type=mish \(node 'leak', LeakyReLU\)"
    ):
        to_onnx(builder.write(after, other), {}, {"data": (None, 3, 4, 4)})


def test_an_attribute_that_is_not_known_is_refused() -> None:
    with pytest.raises(LoadFailed, match=r"alpha=3 \(node 'fc', FullyConnected\)"):
        to_onnx(small(num_hidden=2, alpha=3), PARAMS, INPUTS)


def test_a_malformed_attribute_is_a_bad_artifact() -> None:
    with pytest.raises(BadArtifact, match=r"the node 'fc' \(FullyConnected\) cannot be read: .*'num_hidden' is 'two'"):
        to_onnx(small(num_hidden="two"), PARAMS, INPUTS)


def test_a_reference_to_an_output_that_is_not_there_is_refused() -> None:
    builder = SymbolBuilder()
    relu = builder.op("relu", "r", [builder.variable("data")])
    with pytest.raises(BadArtifact, match="the node 's' reads output 1 of 'r', which has 1"):
        to_onnx(builder.write(builder.op("sigmoid", "s", [relu._replace(output=1)])), {}, INPUTS)
    with pytest.raises(BadArtifact, match="the head 'r_output' is not an output of its own"):
        to_onnx(builder.write(relu, relu), {}, INPUTS)


def test_a_symbol_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"m-symbol\.json"):
        to_onnx(tmp_path / "m-symbol.json", {}, {})


FCN = json.loads((GRAPHS / "fcn/m-symbol.json").read_text())
RNN = json.loads((GRAPHS / "rnn_lstm/m-symbol.json").read_text())
STRANGE = st.sampled_from(["", "0", "-1", "1000000000000", "(0, 0)", "(1,)", "(-5, 7, 9)", "None", "x", "nan", "True"])


@given(st.sampled_from(["fcn", "rnn_lstm"]), st.data())
def test_a_damaged_symbol_is_converted_or_refused_but_never_crashes(name: str, data: st.DataObject) -> None:
    document = json.loads(json.dumps(FCN if name == "fcn" else RNN))
    nodes = document["nodes"]
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.sampled_from(nodes))
        damage = data.draw(st.sampled_from(["attribute", "op", "inputs"]))
        if damage == "attribute" and node.get("attrs"):
            node["attrs"][data.draw(st.sampled_from(sorted(node["attrs"])))] = data.draw(STRANGE)
        elif damage == "op" and node["op"] != "null":
            node["op"] = data.draw(st.sampled_from([other["op"] for other in nodes]))
        elif node["inputs"]:
            node["inputs"] = data.draw(st.lists(st.sampled_from(node["inputs"]), max_size=4))
    inputs, _ = reference(name)
    shapes: dict[str, Any] = {key: (None, *array.shape[1:]) for key, array in inputs.items()}
    with contextlib.suppress(BadArtifact, LoadFailed):
        to_onnx(json.dumps(document).encode(), load(GRAPHS / name / "m-0000.params"), shapes)
