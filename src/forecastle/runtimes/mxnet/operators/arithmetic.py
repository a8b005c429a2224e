"""Arithmetic: on one array, on two (broadcast or not), with a number, and along axes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from forecastle.runtimes.mxnet.attributes import Unsupported
from forecastle.runtimes.mxnet.graph import Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator

_MOST_FILLED = 1 << 24  # numbers; a file of a few bytes shall not ask for more
_UNARY = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softsign": "Softsign",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "negative": "Neg",
    "floor": "Floor",
    "ceil": "Ceil",
    "erf": "Erf",
    "sin": "Sin",
    "cos": "Cos",
}
_BINARY = {
    "Add": ("elemwise_add", "_plus", "_Plus", "broadcast_add", "broadcast_plus"),
    "Sub": ("elemwise_sub", "_minus", "_Minus", "broadcast_sub", "broadcast_minus"),
    "Mul": ("elemwise_mul", "_mul", "_Mul", "broadcast_mul"),
    "Div": ("elemwise_div", "_div", "_Div", "broadcast_div"),
    "Max": ("_maximum", "_Maximum", "broadcast_maximum"),
    "Min": ("_minimum", "_Minimum", "broadcast_minimum"),
    "Pow": ("_power", "_Power", "broadcast_power"),
}
_SCALAR = {
    "Add": ("_plus_scalar", "_PlusScalar"),
    "Sub": ("_minus_scalar", "_MinusScalar"),
    "Mul": ("_mul_scalar", "_MulScalar"),
    "Div": ("_div_scalar", "_DivScalar"),
    "Max": ("_maximum_scalar", "_MaximumScalar"),
    "Min": ("_minimum_scalar", "_MinimumScalar"),
    "Pow": ("_power_scalar", "_PowerScalar"),
}
_REVERSED_SCALAR = {
    "Sub": ("_rminus_scalar", "_RMinusScalar"),
    "Div": ("_rdiv_scalar", "_RDivScalar"),
    "Pow": ("_rpower_scalar", "_RPowerScalar"),
}


def _by_mxnet_name(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: op for op, names in table.items() for name in names}


_BINARY_OPS = _by_mxnet_name(_BINARY)
_SCALAR_OPS = _by_mxnet_name(_SCALAR)
_REVERSED_OPS = _by_mxnet_name(_REVERSED_SCALAR)


@operator(*_UNARY)
def unary(graph: Graph, call: Call) -> str:
    """A function of each number."""
    return graph.add(_UNARY[call.op], call.inputs)


@operator("square")
def square(graph: Graph, call: Call) -> str:
    """Each number times itself."""
    return graph.add("Mul", call.inputs * 2)


@operator(*_BINARY_OPS)
def binary(graph: Graph, call: Call) -> str:
    """A function of two arrays, number by number."""
    return graph.add(_BINARY_OPS[call.op], call.inputs)


@operator(*_SCALAR_OPS)
def with_scalar(graph: Graph, call: Call) -> str:
    """An array and a number."""
    return graph.add(_SCALAR_OPS[call.op], [*call.inputs, graph.constant(call.attributes.number("scalar"))])


@operator(*_REVERSED_OPS)
def with_scalar_first(graph: Graph, call: Call) -> str:
    """A number and an array."""
    return graph.add(_REVERSED_OPS[call.op], [graph.constant(call.attributes.number("scalar")), *call.inputs])


@operator("add_n", "ElementWiseSum")
def add_n(graph: Graph, call: Call) -> str:
    """The sum of any number of arrays."""
    return graph.add("Sum", call.inputs)


@operator("clip")
def clip(graph: Graph, call: Call) -> str:
    """Nothing below ``a_min`` or above ``a_max``."""
    bounds = (graph.constant(call.attributes.number(name)) for name in ("a_min", "a_max"))
    return graph.add("Clip", [*call.inputs, *bounds])


@operator("Cast", "cast")
def cast(graph: Graph, call: Call) -> str:
    """To whole numbers it cuts fractions off; to another float it does nothing, all floats being float32."""
    dtype = call.attributes.text("dtype")
    whole = {
        "int8": TensorProto.INT8,
        "int32": TensorProto.INT32,
        "int64": TensorProto.INT64,
        "uint8": TensorProto.UINT8,
    }
    if dtype in whole:
        return graph.add("Cast", [graph.add("Cast", call.inputs, to=whole[dtype])], to=TensorProto.FLOAT)
    call.attributes.only("dtype", "float16", "float32", "float64")
    return call.inputs[0]


@operator("_zeros", "zeros", "_ones", "ones")
def filled(graph: Graph, call: Call) -> str:
    """Zeros or ones; a size of 0 means that of the batch, and one is broadcast to it."""
    shape = [size or 1 for size in call.attributes.integers("shape")]
    if math.prod(shape) > _MOST_FILLED:
        raise Unsupported(f"shape={call.attributes.text('shape')}")
    return graph.constant(np.full(shape, 1 if "ones" in call.op else 0))


@operator("sum", "mean", "max", "min", "sum_axis", "max_axis", "min_axis")
def reduction(graph: Graph, call: Call) -> str:
    """Along some axes or, by default, all; without any axis left MXNet gives a list of one."""
    attributes, data = call.attributes, call.inputs[0]
    kind, keeps = call.op.removesuffix("_axis"), attributes.flag("keepdims")
    everything = tuple(range(len(graph.shape(data))))
    given = tuple(axis % len(everything) for axis in attributes.integers("axis"))
    axes = given or everything
    if attributes.flag("exclude") and given:
        axes = tuple(axis for axis in everything if axis not in given)
    if kind == "sum":  # its axes are an input since opset 13
        reduced = graph.add("ReduceSum", [data, graph.integers(axes)], keepdims=int(keeps))
    else:
        reduced = graph.add(f"Reduce{kind.capitalize()}", [data], axes=axes, keepdims=int(keeps))
    return reduced if keeps or len(axes) < len(everything) else graph.add("Reshape", [reduced, graph.integers([1])])


@operator("argmax")
def argmax(graph: Graph, call: Call) -> str:
    """Where the largest number stands along an axis, as a float."""
    if not call.attributes.has("axis"):
        raise Unsupported("axis=None")
    axis, keeps = call.attributes.integer("axis"), int(call.attributes.flag("keepdims"))
    return graph.add("Cast", [graph.add("ArgMax", call.inputs, axis=axis, keepdims=keeps)], to=TensorProto.FLOAT)


@operator("dot", "batch_dot")
def dot(graph: Graph, call: Call) -> str:
    """The product of two matrices, or of two batches of them."""
    rank = 3 if call.op == "batch_dot" else 2
    order = [*range(rank - 2), rank - 1, rank - 2]
    factors = list(call.inputs)
    for place, name in enumerate(("transpose_a", "transpose_b")):
        if len(graph.shape(factors[place])) != rank:
            raise Unsupported(f"an input of {len(graph.shape(factors[place]))} axes, where {rank} are expected")
        if call.attributes.flag(name):
            factors[place] = graph.add("Transpose", [factors[place]], perm=order)
    return graph.add("MatMul", factors)
