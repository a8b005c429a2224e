"""Layers with weights: convolutions, dense layers, and the upsampling that is a fixed or learnt convolution."""

from __future__ import annotations

from collections.abc import Sequence

from forecastle.runtimes.mxnet.attributes import Attributes, Unsupported
from forecastle.runtimes.mxnet.graph import Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator

_CHANNELS_FIRST = ("NCW", "NCHW", "NCDHW")


def _present(inputs: Sequence[str]) -> list[str]:
    return [value for value in inputs if value]


class _Window:
    """What all convolutions share: one number per spatial axis."""

    def __init__(self, attributes: Attributes) -> None:
        attributes.only("layout", *_CHANNELS_FIRST)
        self.kernel = attributes.integers("kernel")
        if not self.kernel:
            raise ValueError("the attribute 'kernel' is missing")
        axes = len(self.kernel)
        self.strides = attributes.integers("stride", (1,) * axes)
        self.dilations = attributes.integers("dilate", (1,) * axes)
        self.pads = attributes.integers("pad", (0,) * axes)
        self.groups = attributes.integer("num_group", 1)
        if not len(self.strides) == len(self.dilations) == len(self.pads) == axes:
            raise ValueError(f"stride, dilate and pad need {axes} numbers each, as the kernel has")


@operator("Convolution", "Convolution_v1")
def convolution(graph: Graph, call: Call) -> str:
    """Weights are (filters, channels per group, *kernel) in both formats."""
    window = _Window(call.attributes)
    _check_weight(graph, call, window, output_axis=0)
    return graph.add(
        "Conv",
        _present(call.inputs),
        kernel_shape=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads * 2,
        group=window.groups,
    )


def _check_weight(graph: Graph, call: Call, window: _Window, output_axis: int) -> None:
    """Say which parameter is wrong, where a runtime would only name a node of its own."""
    weight = graph.shape(call.inputs[1])
    channels = graph.shape(call.inputs[0])[1]
    per_group = None if channels is None or window.groups < 1 else channels // window.groups
    filters = call.attributes.integer("num_filter")
    expected = (filters, per_group) if output_axis == 0 else (channels, filters // max(window.groups, 1))
    found = weight[:2]
    fits = all(want in {None, size} for want, size in zip(expected, found, strict=False))
    if not (fits and len(weight) == len(window.kernel) + 2 and weight[2:] == window.kernel):
        raise ValueError(f"its weight has the shape {weight}, where {(*expected, *window.kernel)} is expected")
    _check_bias(graph, call, filters)


def _check_bias(graph: Graph, call: Call, outputs: int) -> None:
    for bias in _present(call.inputs[2:3]):
        if graph.shape(bias) != (outputs,):
            raise ValueError(f"its bias has the shape {graph.shape(bias)}, where {(outputs,)} is expected")


@operator("Deconvolution")
def deconvolution(graph: Graph, call: Call) -> str:
    """Weights are (channels, filters per group, *kernel) in both formats."""
    window = _Window(call.attributes)
    _check_weight(graph, call, window, output_axis=1)
    pads, adjust = window.pads, call.attributes.integers("adj", (0,) * len(window.kernel))
    if target := call.attributes.integers("target_shape"):
        sizes = graph.known_sizes(call.inputs[0], range(2, 2 + len(target)))
        # What the full transposed convolution gives beyond the target is cut at both ends, an odd one off the start.
        excess = [
            stride * (size - 1) + dilation * (kernel - 1) + 1 - wanted
            for stride, size, dilation, kernel, wanted in zip(
                window.strides, sizes, window.dilations, window.kernel, target, strict=True
            )
        ]
        if min(excess) < 0:
            raise ValueError(f"the target_shape {target} is larger than the layer can give")
        pads, adjust = tuple((cut + 1) // 2 for cut in excess), tuple(cut % 2 for cut in excess)
    return graph.add(
        "ConvTranspose",
        _present(call.inputs),
        kernel_shape=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=pads * 2,
        output_padding=adjust,
        group=window.groups,
    )


@operator("FullyConnected")
def fully_connected(graph: Graph, call: Call) -> str:
    """A dense layer, on everything but the first axis or (``flatten=False``) on the last axis alone."""
    data, weight, *bias = _present(call.inputs)
    units, width = graph.known_sizes(weight, (0, 1)) if len(graph.shape(weight)) == 2 else (0, 0)
    if units != (wanted := call.attributes.integer("num_hidden")):
        raise ValueError(f"its weight has the shape {graph.shape(weight)}, where {wanted} rows are expected")
    _check_bias(graph, call, units)
    if call.attributes.flag("flatten", default=True):
        if len(graph.shape(data)) != 2:
            data = graph.add("Flatten", [data], axis=1)
        if graph.shape(data)[1] not in {None, width}:
            raise ValueError(f"its weight has {width} columns, where {graph.shape(data)[1]} are expected")
        return graph.add("Gemm", [data, weight, *bias], transB=1)
    product = graph.add("MatMul", [data, graph.add("Transpose", [weight], perm=(1, 0))])
    return graph.add("Add", [product, *bias]) if bias else product


@operator("UpSampling")
def upsampling(graph: Graph, call: Call) -> str:
    """Whole-number enlargement, by repetition or by a learnt bilinear kernel."""
    scale = call.attributes.integer("scale")
    if call.attributes.text("sample_type") == "nearest":
        if len(call.inputs) != 1:
            raise Unsupported(f"num_args={len(call.inputs)}")
        return graph.add(
            "Resize",
            [call.inputs[0], "", graph.constant([1, 1, scale, scale])],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    call.attributes.only("sample_type", "bilinear")
    kernel, pad = 2 * scale - scale % 2, scale // 2
    (channels,) = graph.known_sizes(call.inputs[0], (1,))
    return graph.add(
        "ConvTranspose",
        call.inputs,
        kernel_shape=(kernel, kernel),
        strides=(scale, scale),
        pads=(pad,) * 4,
        group=channels,
    )


@operator("Embedding")
def embedding(graph: Graph, call: Call) -> str:
    """Rows of a table; indices beyond it take its first or last row, as MXNet does."""
    indices, table = call.inputs
    (rows,) = graph.known_sizes(table, (0,))
    within = graph.add("Clip", [indices, graph.constant(0), graph.constant(rows - 1)])
    return graph.add("Gather", [table, graph.add("Cast", [within], to=7)], axis=0)
