"""Small ONNX models with known weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from forecastle.models.artifact import Artifact

WEIGHTS = np.random.default_rng(7).normal(size=(3, 4)).astype(np.float32)


def save(
    path: Path, nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any], **weights: np.ndarray[Any, Any]
) -> Artifact:
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, path)
    return Artifact("onnx", "onnx", str(path), path.name)


def value(name: str, shape: list[Any], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def dense(path: Path, rows: Any = "N") -> Artifact:
    """``x`` (rows, 3) to ``scores`` (rows, 4), a softmax over a matrix."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
    ]
    return save(path, nodes, [value("x", [rows, 3])], [value("scores", [rows, 4])], w=WEIGHTS)


def expected(x: Any) -> np.ndarray[Any, Any]:
    logits = np.asarray(x, np.float32) @ WEIGHTS
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


def free_width(path: Path) -> Artifact:
    """``x`` (rows, any) to its ``sum`` (rows) and ``double`` (rows, any)."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "axis"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "x"], ["double"]),
    ]
    outputs = [value("sum", ["N"]), value("double", ["N", "W"])]
    return save(path, nodes, [value("x", ["N", "W"])], outputs, axis=np.array([1], np.int64))


def two_inputs(path: Path) -> Artifact:
    """``a`` (rows, 2) int64 and ``b`` (rows, 2) float to ``sum``."""
    nodes = [
        helper.make_node("Cast", ["a"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["f", "b"], ["sum"]),
    ]
    inputs = [value("a", ["N", 2], TensorProto.INT64), value("b", ["N", 2])]
    return save(path, nodes, inputs, [value("sum", ["N", 2])])


def mean_colour(path: Path, size: int = 4) -> Artifact:
    """A picture ``image`` (rows, 3, size, size) to the mean of each channel, ``colour`` (rows, 3)."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["colour"], axis=1),
    ]
    return save(path, nodes, [value("image", ["N", 3, size, size])], [value("colour", ["N", 3])])


def over_batch(path: Path) -> Artifact:
    """A model whose output has no rows: the mean of the whole batch."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0)]
    return save(path, nodes, [value("x", ["N", 2])], [value("mean", [])])


def same(path: Path, kind: int, shape: list[Any]) -> Artifact:
    """``x`` of any type to an equal ``y``."""
    return save(
        path, [helper.make_node("Identity", ["x"], ["y"])], [value("x", shape, kind)], [value("y", shape, kind)]
    )


def logistic_regression(path: Path) -> Artifact:
    """``X`` (rows, 3) to ``label`` (rows) and a dict of probabilities a row, as converters of scikit-learn write it."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["X"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=WEIGHTS.T.ravel().tolist(),
            intercepts=[0.0] * 4,
            classlabels_ints=[0, 1, 2, 3],
            post_transform="SOFTMAX",
        ),
        helper.make_node("ZipMap", ["scores"], ["probabilities"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2, 3]),
    ]
    map_ = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    probabilities = helper.make_value_info("probabilities", helper.make_sequence_type_proto(map_))
    return save(path, nodes, [value("X", ["N", 3])], [value("label", ["N"], TensorProto.INT64), probabilities])


def mean_colour_last(path: Path) -> Artifact:
    """A picture ``image`` (rows, 4, 6, 3) of bytes, channels last, to ``colour`` (rows, 3)."""
    nodes = [
        helper.make_node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["float"], ["colour"], axes=[1, 2], keepdims=0),
    ]
    inputs = [value("image", ["N", 4, 6, 3], TensorProto.UINT8)]
    return save(path, nodes, inputs, [value("colour", ["N", 3])])


def scores_of_pixels(path: Path) -> Artifact:
    """``x`` (rows, 3) to ``scores`` (rows, 3, 1, 1), as networks that end in a pooling do."""
    nodes = [helper.make_node("Unsqueeze", ["x", "axes"], ["scores"])]
    outputs = [value("scores", ["N", 3, 1, 1])]
    return save(path, nodes, [value("x", ["N", 3])], outputs, axes=np.array([2, 3], np.int64))
