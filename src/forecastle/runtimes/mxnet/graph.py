"""The ONNX graph while it is being built: each value's type is known as soon as its node is added.

Every tensor of a model is float32, whatever MXNet stored; only sizes, indices and axes are int64. Shapes come from
ONNX's own inference, run on each new node alone. A size that depends on the request, the batch above all, is ``None``,
and nothing that a converter computes from shapes may bake it in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, checker, defs, helper, numpy_helper, shape_inference

from forecastle.runtimes.mxnet.attributes import Unsupported

Array = npt.NDArray[Any]
Shape = tuple[int | None, ...]

OPSET = 17
_IR_VERSION = 8  # the one that came with this opset
_OPSETS = [helper.make_opsetid("", OPSET)]
_SMALL = 64  # constants up to this size may be operands (axes, shapes, scales): inference is told their values


class Graph:
    """A growing ONNX graph. Values are named by strings; the empty string is an input that is absent."""

    def __init__(self, parameters: Mapping[str, Array], inputs: Mapping[str, Shape]) -> None:
        self.scope = "graph"
        """The MXNet node being converted, after which new values are named."""
        self._parameters = parameters
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Array] = {}
        self._types: dict[str, onnx.TypeProto] = {}
        self._count = 0
        for name, shape in inputs.items():
            sizes = [size or ("batch" if axis == 0 else f"{name}_{axis}") for axis, size in enumerate(shape)]
            self._types[name] = helper.make_tensor_type_proto(TensorProto.FLOAT, sizes)
        self._inputs = tuple(inputs)

    def parameter(self, name: str) -> str:
        """The trained parameter of that name, in float32."""
        if name not in self._parameters:
            raise ValueError(f"the parameter {name!r} is missing")
        if name not in self._constants:
            self._constant(name, np.asarray(self._parameters[name], np.float32))
        return name

    def constant(self, value: npt.ArrayLike) -> str:
        """A float32 constant."""
        return self._constant(self._new("constant"), np.asarray(value, np.float32))

    def integers(self, values: Iterable[int]) -> str:
        """A one-dimensional int64 constant: axes, sizes, indices."""
        return self._constant(self._new("integers"), np.asarray(list(values), np.int64))

    def add(self, op: str, inputs: Sequence[str], **attributes: object) -> str:
        """Add a node and return the name of its one output. Attributes that are ``None`` are left out."""
        return self.add_many(op, inputs, 1, **attributes)[0]

    def add_many(self, op: str, inputs: Sequence[str], count: int, **attributes: object) -> list[str]:
        """Add a node with ``count`` outputs. Inputs of a wrong number, type or shape raise `ValueError`."""
        outputs = [self._new(op) for _ in range(count)]
        given: dict[str, Any] = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(op, list(inputs), outputs, outputs[0], **given)
        types = {name: self._types[name] for name in inputs if name in self._types}
        if any(name and name not in types for name in inputs):
            raise Unsupported("a shape that can only be known at run time")
        operands = {
            name: numpy_helper.from_array(self._constants[name], name)
            for name in inputs
            if name in self._constants and self._constants[name].size <= _SMALL
        }
        try:
            found = shape_inference.infer_node_outputs(
                defs.get_schema(op, OPSET), node, types, operands, opset_imports=_OPSETS, ir_version=_IR_VERSION
            )
        except (shape_inference.InferenceError, checker.ValidationError) as error:
            raise ValueError(f"its inputs do not fit each other: {error}") from error
        self._types.update(found)
        self._nodes.append(node)
        return outputs

    def shape(self, value: str) -> Shape:
        """The value's shape; sizes that depend on the request are ``None``."""
        known = self._types.get(value)
        if known is None or not known.tensor_type.HasField("shape"):
            raise Unsupported("an input whose number of axes can only be known at run time")
        return tuple(size.dim_value if size.HasField("dim_value") else None for size in known.tensor_type.shape.dim)

    def known_sizes(self, value: str, axes: Iterable[int]) -> list[int]:
        """The sizes of these axes, where the conversion needs them as numbers."""
        shape = self.shape(value)
        sizes = [shape[axis] for axis in axes]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            raise Unsupported("an input whose size is not declared in the signature")
        return known

    def sizes(self, value: str, axes: Sequence[int]) -> str:
        """The sizes of these axes as an int64 tensor: a constant where they are known."""
        shape = self.shape(value)
        known = [size for axis in axes if (size := shape[axis]) is not None]
        if len(known) == len(axes):
            return self.integers(known)
        return self.add("Gather", [self.add("Shape", [value]), self.integers(axes)], axis=0)

    def value(self, name: str) -> Array:
        """The numbers of a constant or parameter; a computed value is refused."""
        if name not in self._constants:
            raise Unsupported("a computed value in the place of a parameter")
        return self._constants[name]

    def made_by(self, value: str) -> str:
        """The ONNX operator that computes the value; nothing for an input or a constant."""
        return next((node.op_type for node in reversed(self._nodes) if value in node.output), "")

    def is_zero(self, name: str) -> bool:
        """Whether the value is a constant of zeros."""
        return name in self._constants and not self._constants[name].any()

    def model(self, outputs: Mapping[str, str]) -> onnx.ModelProto:
        """The finished model; ``outputs`` maps the names it shall give to values. Unused nodes are dropped."""
        nodes = [helper.make_node("Identity", [value], [name], name) for name, value in outputs.items()]
        needed = set(outputs.values())
        for node in reversed(self._nodes):
            if not needed.isdisjoint(node.output):
                nodes.append(node)
                needed.update(node.input)
        nodes.reverse()
        size = sum(array.nbytes for name, array in self._constants.items() if name in needed)
        if size >= 2**31:
            raise Unsupported(f"parameters of {math.ceil(size / 2**30)} GiB, where 2 GiB is the most")
        graph = helper.make_graph(
            nodes,
            "mxnet",
            [helper.make_value_info(name, self._types[name]) for name in self._inputs],
            [self._output(name, value) for name, value in outputs.items()],
            [numpy_helper.from_array(array, name) for name, array in self._constants.items() if name in needed],
        )
        return helper.make_model(graph, opset_imports=_OPSETS, ir_version=_IR_VERSION, producer_name="forecastle")

    def _output(self, name: str, value: str) -> onnx.ValueInfoProto:
        known = self._types.get(value)
        return helper.make_value_info(name, known or helper.make_tensor_type_proto(TensorProto.FLOAT, None))

    def _constant(self, name: str, array: Array) -> str:
        self._constants[name] = array
        self._types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        return name

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{self.scope}/{kind}_{self._count}"
