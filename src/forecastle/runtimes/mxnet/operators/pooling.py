"""Pooling, with MXNet's two ways of rounding the output's size."""

from __future__ import annotations

import math
from functools import reduce
from typing import NamedTuple

import numpy as np

from forecastle.runtimes.mxnet.attributes import Attributes, Unsupported
from forecastle.runtimes.mxnet.graph import Array, Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator


@operator("Pooling", "Pooling_v1")
def pooling(graph: Graph, call: Call) -> str:
    """Maximum, average, sum or Euclidean length, over windows or everything."""
    attributes, data = call.attributes, call.inputs[0]
    attributes.only("pool_type", "max", "avg", "sum", "lp")
    attributes.only("layout", "NCW", "NCHW", "NCDHW")
    attributes.only("pooling_convention", "valid", "full")
    attributes.only("p_value", "2")  # others than 2 do not take absolute values, unlike ONNX
    window = _Window.read(attributes)
    full = attributes.text("pooling_convention", "valid") == "full"
    if attributes.flag("global_pool"):
        return _global(graph, data, window)
    if not (window.kernel and len(window.kernel) == len(window.strides) == len(window.pads)):
        raise ValueError("kernel, stride and pad need one number per spatial axis each")
    if call.op == "Pooling_v1":  # it takes padding for zeros: in an average always, and even in a maximum
        attributes.only("pooling_convention", "valid")
        if window.kind == "max" and any(window.pads):
            raise Unsupported(f"pad={window.pads}")
        window = window._replace(counts_pads=True)
    if not full:
        return _pool(graph, data, window, window.pads)
    sizes = graph.known_sizes(data, range(2, 2 + len(window.kernel)))
    ends = window.ends(sizes)
    if any(end >= kernel for end, kernel in zip(ends, window.kernel, strict=True)):
        raise Unsupported("pooling_convention=full with windows that lie beyond the end")
    if window.kind != "avg" or ends == window.pads:
        return _pool(graph, data, window, ends)
    average = _pool(graph, data, window._replace(counts_pads=True), ends)
    return graph.add("Mul", [average, graph.constant(math.prod(window.kernel) / window.counted(sizes, ends))])


class _Window(NamedTuple):
    """What is pooled, and how; one number per spatial axis."""

    kind: str
    counts_pads: bool
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]

    @classmethod
    def read(cls, attributes: Attributes) -> _Window:
        kernel = attributes.integers("kernel")
        return cls(
            attributes.text("pool_type", "max"),
            attributes.flag("count_include_pad", default=True),
            kernel,
            attributes.integers("stride", (1,) * len(kernel)),
            attributes.integers("pad", (0,) * len(kernel)),
        )

    def ends(self, sizes: list[int]) -> tuple[int, ...]:
        """The padding at the end with which the last, incomplete window fits."""
        return tuple(
            pad + -(size + 2 * pad - kernel) % stride
            for size, kernel, stride, pad in zip(sizes, self.kernel, self.strides, self.pads, strict=True)
        )

    def counted(self, sizes: list[int], ends: tuple[int, ...]) -> Array:
        """By how many cells the average of each window divides: padding beyond the symmetric one never counts."""
        per_axis = []
        for size, end, kernel, stride, pad in zip(sizes, ends, self.kernel, self.strides, self.pads, strict=True):
            margin = pad if self.counts_pads else 0
            starts = np.arange(-pad, size + end - kernel + 1, stride)
            cells = np.minimum(starts + kernel, size + margin) - np.maximum(starts, -margin)
            per_axis.append(np.maximum(cells, 1))
        counts: Array = reduce(np.multiply.outer, per_axis)
        return counts


def _pool(graph: Graph, data: str, window: _Window, ends: tuple[int, ...]) -> str:
    where = {"kernel_shape": window.kernel, "strides": window.strides, "pads": (*window.pads, *ends)}
    if window.kind == "max":
        if graph.made_by(data) == "Pad":
            # onnxruntime (seen up to 1.26) merges the two and forgets the padding's value; this keeps them apart.
            data = graph.add("Max", [data, graph.constant(np.finfo(np.float32).min)])
        return graph.add("MaxPool", [data], **where)
    if window.kind == "lp":
        return graph.add("LpPool", [data], p=2, **where)
    if window.kind == "avg":
        return graph.add("AveragePool", [data], count_include_pad=int(window.counts_pads), **where)
    average = graph.add("AveragePool", [data], count_include_pad=1, **where)
    return graph.add("Mul", [average, graph.constant(math.prod(window.kernel))])


def _global(graph: Graph, data: str, window: _Window) -> str:
    if window.kind == "lp":
        return graph.add("GlobalLpPool", [data], p=2)
    if window.kind == "sum":
        axes = range(2, len(graph.shape(data)))
        return graph.add("ReduceSum", [data, graph.integers(axes)], keepdims=1)
    return graph.add({"max": "GlobalMaxPool", "avg": "GlobalAveragePool"}[window.kind], [data])
