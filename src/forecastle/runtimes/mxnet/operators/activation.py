"""Activations, and the softmax family that stands inside a network."""

from __future__ import annotations

from forecastle.runtimes.mxnet.attributes import Unsupported
from forecastle.runtimes.mxnet.graph import Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator

_ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softrelu": "Softplus",
    "softsign": "Softsign",
}


@operator("Activation")
def activation(graph: Graph, call: Call) -> str:
    """One of five functions, by name."""
    call.attributes.only("act_type", *_ACTIVATIONS)
    return graph.add(_ACTIVATIONS[call.attributes.text("act_type")], call.inputs)


@operator("LeakyReLU")
def leaky_relu(graph: Graph, call: Call) -> str:
    """The rectifiers that let something through below zero."""
    data, attributes = call.inputs[0], call.attributes
    kind = attributes.text("act_type", "leaky")
    slope = attributes.number("slope", 0.25)
    bounds = attributes.number("lower_bound", 0.125), attributes.number("upper_bound", 0.334)
    if kind == "leaky":
        return graph.add("LeakyRelu", [data], alpha=slope)
    if kind == "rrelu":  # random while training, the middle afterwards
        return graph.add("LeakyRelu", [data], alpha=sum(bounds) / 2)
    if kind == "elu":
        return graph.add("Elu", [data], alpha=slope)
    if kind == "selu":
        return graph.add("Selu", [data])
    if kind == "gelu":
        error = graph.add("Erf", [graph.add("Mul", [data, graph.constant(0.5**0.5)])])
        half = graph.add("Mul", [data, graph.constant(0.5)])
        return graph.add("Mul", [half, graph.add("Add", [error, graph.constant(1)])])
    if kind == "prelu":  # one slope per channel, which is axis 1
        following = len(graph.shape(data)) - 2
        slopes = graph.value(call.inputs[1]).reshape((-1,) + (1,) * following)
        return graph.add("PRelu", [data, graph.constant(slopes)])
    raise Unsupported(f"act_type={kind}")


@operator("softmax", "log_softmax")
def softmax(graph: Graph, call: Call) -> str:
    """Along one axis, the last by default."""
    data, attributes = call.inputs[0], call.attributes
    attributes.only("use_length", "False", "0")
    if attributes.has("temperature") and (temperature := attributes.number("temperature")) != 1:
        data = graph.add("Div", [data, graph.constant(temperature)])
    op = "Softmax" if call.op == "softmax" else "LogSoftmax"
    return graph.add(op, [data], axis=attributes.integer("axis", -1))


@operator("SoftmaxActivation")
def softmax_activation(graph: Graph, call: Call) -> str:
    """Over the channels or the last axis."""
    call.attributes.only("mode", "instance", "channel")
    return graph.add("Softmax", call.inputs, axis=1 if call.attributes.text("mode", "instance") == "channel" else -1)
