"""Normalisations."""

from __future__ import annotations

import numpy as np

from forecastle.runtimes.mxnet.attributes import Unsupported
from forecastle.runtimes.mxnet.graph import Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator


@operator("BatchNorm", "BatchNorm_v1", "CuDNNBatchNorm", "_contrib_SyncBatchNorm")
def batch_norm(graph: Graph, call: Call) -> str:
    """Scale and shift per channel by the statistics of training."""
    attributes = call.attributes
    attributes.only("output_mean_var", "False", "0")
    epsilon = attributes.number("eps", 1e-3)
    data, gamma, beta, *statistics = call.inputs
    if not statistics:  # files from before 0.9 keep them out of the graph
        statistics = [graph.parameter(f"{call.name}_moving_mean"), graph.parameter(f"{call.name}_moving_var")]
    mean, variance = statistics
    (channels,) = graph.known_sizes(mean, (0,))
    if attributes.flag("fix_gamma", default=True):  # whatever the file holds for it
        gamma = graph.constant(np.ones(channels))
    rank = len(graph.shape(data))
    axis = attributes.integer("axis", 1) % rank
    for what, value in (("data", data), ("gamma", gamma), ("beta", beta), ("moving_var", variance)):
        size = graph.shape(value)[axis if value == data else 0]
        if size not in {None, channels}:
            raise ValueError(f"its {what} has {size} channels, where its moving_mean has {channels}")
    if axis == 1:
        return graph.add("BatchNormalization", [data, gamma, beta, mean, variance], epsilon=epsilon)
    scale = graph.value(gamma) / np.sqrt(graph.value(variance) + np.float32(epsilon))
    shift = graph.value(beta) - graph.value(mean) * scale
    along = (-1,) + (1,) * (rank - 1 - axis)
    scaled = graph.add("Mul", [data, graph.constant(scale.reshape(along))])
    return graph.add("Add", [scaled, graph.constant(shift.reshape(along))])


@operator("InstanceNorm")
def instance_norm(graph: Graph, call: Call) -> str:
    """Each channel of each item on its own."""
    return graph.add("InstanceNormalization", call.inputs, epsilon=call.attributes.number("eps", 1e-3))


@operator("LayerNorm")
def layer_norm(graph: Graph, call: Call) -> str:
    """Over the last axis."""
    call.attributes.only("output_mean_var", "False", "0")
    axis, rank = call.attributes.integer("axis", -1), len(graph.shape(call.inputs[0]))
    if axis not in {-1, rank - 1}:
        raise Unsupported(f"axis={axis}")
    return graph.add("LayerNormalization", call.inputs, axis=-1, epsilon=call.attributes.number("eps", 1e-5))


@operator("LRN")
def local_response_norm(graph: Graph, call: Call) -> str:
    """Across neighbouring channels; both formats divide alpha by the number of neighbours."""
    attributes = call.attributes
    return graph.add(
        "LRN",
        call.inputs,
        alpha=attributes.number("alpha", 1e-4),
        beta=attributes.number("beta", 0.75),
        bias=attributes.number("knorm", 2),
        size=attributes.integer("nsize"),
    )


@operator("L2Normalization")
def l2_normalization(graph: Graph, call: Call) -> str:
    """Divide by the Euclidean length over a whole item, its channels or its positions."""
    mode, rank = call.attributes.text("mode", "instance"), len(graph.shape(call.inputs[0]))
    modes = {"instance": range(1, rank), "channel": range(1, 2), "spatial": range(2, rank)}
    call.attributes.only("mode", *modes)
    squares = graph.add("ReduceSumSquare", call.inputs, axes=list(modes[mode]), keepdims=1)
    epsilon = graph.constant(call.attributes.number("eps", 1e-10))
    return graph.add("Div", [call.inputs[0], graph.add("Sqrt", [graph.add("Add", [squares, epsilon])])])
