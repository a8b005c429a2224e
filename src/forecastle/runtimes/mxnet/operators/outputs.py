"""What stands at the end of a network for training, and passes its input on, or nearly so, for serving."""

from __future__ import annotations

from forecastle.runtimes.mxnet.graph import Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator

_LABEL = frozenset({1})


@operator("BlockGrad", "stop_gradient", "_copy", "identity", "MakeLoss", "make_loss", "IdentityAttachKLSparseReg")
@operator("LinearRegressionOutput", "MAERegressionOutput", labels=_LABEL)
def passed_on(graph: Graph, call: Call) -> str:  # noqa: ARG001
    """Only the gradient would differ."""
    return call.inputs[0]


@operator("Dropout")
def dropout(graph: Graph, call: Call) -> str:  # noqa: ARG001
    """Nothing is dropped when serving, unless the network asks for it even then."""
    call.attributes.only("mode", "training")
    call.attributes.text("axes", "")
    return call.inputs[0]


@operator("LogisticRegressionOutput", labels=_LABEL)
def logistic_regression_output(graph: Graph, call: Call) -> str:
    """The sigmoid."""
    return graph.add("Sigmoid", call.inputs[:1])


@operator("SoftmaxOutput", "Softmax", labels=_LABEL)
def softmax_output(graph: Graph, call: Call) -> str:
    """Softmax over the channels (``multi_output``), the last axis (``preserve_shape``) or all of an item."""
    over_channels, over_last = call.attributes.flag("multi_output"), call.attributes.flag("preserve_shape")
    if over_channels or over_last:
        return graph.add("Softmax", call.inputs[:1], axis=1 if over_channels else -1)
    data = call.inputs[0]
    if len(graph.shape(data)) == 2:
        return graph.add("Softmax", [data], axis=1)
    flat = graph.add("Softmax", [graph.add("Flatten", [data], axis=1)], axis=1)
    return graph.add("Reshape", [flat, graph.add("Shape", [data])])
