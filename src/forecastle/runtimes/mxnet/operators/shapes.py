"""Operators that change an array's shape and none of its numbers."""

from __future__ import annotations

from typing import NamedTuple

from forecastle.runtimes.mxnet.attributes import Unsupported
from forecastle.runtimes.mxnet.graph import Graph, Shape
from forecastle.runtimes.mxnet.operators.table import Call, operator


@operator("Flatten", "flatten")
def flatten(graph: Graph, call: Call) -> str:
    """All axes but the first into one."""
    return graph.add("Flatten", call.inputs, axis=1)


@operator("transpose")
def transpose(graph: Graph, call: Call) -> str:
    """Axes in the given order, or reversed."""
    return graph.add("Transpose", call.inputs, perm=call.attributes.integers("axes") or None)


@operator("SwapAxis", "swapaxes")
def swap_axes(graph: Graph, call: Call) -> str:
    """Two axes change places."""
    order = list(range(len(graph.shape(call.inputs[0]))))
    first, second = call.attributes.integer("dim1", 0), call.attributes.integer("dim2", 0)
    order[first], order[second] = order[second], order[first]
    return graph.add("Transpose", call.inputs, perm=order)


@operator("expand_dims")
def expand_dims(graph: Graph, call: Call) -> str:
    """A new axis of size one."""
    return graph.add("Unsqueeze", [*call.inputs, graph.integers([call.attributes.integer("axis")])])


@operator("squeeze")
def squeeze(graph: Graph, call: Call) -> str:
    """Drop the given axes, or all that are always of size one (a batch that happens to be one stays)."""
    ones = tuple(axis for axis, size in enumerate(graph.shape(call.inputs[0])) if size == 1)
    axes = call.attributes.integers("axis", ones)
    return graph.add("Squeeze", [*call.inputs, graph.integers(axes)]) if axes else call.inputs[0]


@operator("Reshape", "reshape")
def reshape(graph: Graph, call: Call) -> str:
    """MXNet's reshape with its codes for keeping, merging and splitting axes."""
    attributes, data = call.attributes, call.inputs[0]
    source = graph.shape(data)
    codes = attributes.integers("shape")
    target, keep_highest = attributes.integers("target_shape"), attributes.flag("keep_highest")
    reverse = attributes.flag("reverse")
    if not codes and target:  # the form before 0.9: a zero is what remains
        codes = tuple(0 if keep_highest and axis == 0 else size or -1 for axis, size in enumerate(target))
    if not codes:
        raise ValueError("the attribute 'shape' is missing")
    if reverse:
        if -4 in codes:
            raise Unsupported("reverse=True with the code -4")
        mirrored = _sizes(source[::-1], codes[::-1])
        sizes = [size.mirrored(len(source)) for size in reversed(mirrored)]
    else:
        sizes = _sizes(source, codes)
    return graph.add("Reshape", [data, _shape_operand(graph, data, [size.folded(source) for size in sizes])])


class _Size(NamedTuple):
    """A size of the new shape: ``factor`` times the sizes of some source axes, over ``divisor``; -1 for the rest."""

    factor: int
    axes: tuple[int, ...] = ()
    divisor: int = 1

    def mirrored(self, rank: int) -> _Size:
        return self._replace(axes=tuple(rank - 1 - axis for axis in self.axes))

    def folded(self, source: Shape) -> _Size:
        """The axes whose sizes are known become part of the factor."""
        factor, open_axes = self.factor, []
        for axis in self.axes:
            size = source[axis]
            if size is None:
                open_axes.append(axis)
            else:
                factor *= size
        if open_axes:
            return _Size(factor, tuple(open_axes), self.divisor)
        return _Size(factor // self.divisor)


def _sizes(source: Shape, codes: tuple[int, ...]) -> list[_Size]:
    """Read the codes: 0 keeps an axis, -1 is what remains, -2 keeps all others, -3 merges two, -4 splits one."""
    sizes: list[_Size] = []
    axis = at = 0
    while at < len(codes):
        code = codes[at]
        at += 1
        if code > 0 or code == -1:
            sizes.append(_Size(code))
            axis += 1
        elif code == 0:
            sizes.append(_Size(1, (axis,)))
            axis += 1
        elif code == -2:
            sizes.extend(_Size(1, (rest,)) for rest in range(axis, len(source)))
            axis = len(source)
        elif code == -3:
            sizes.append(_Size(1, (axis, axis + 1)))
            axis += 2
        elif code == -4:
            first, second = codes[at : at + 2]
            whole = (axis,)
            sizes.append(_Size(1, whole, second) if first == -1 else _Size(first))
            sizes.append(_Size(1, whole, first) if second == -1 else _Size(second))
            axis += 1
            at += 2
        else:
            raise ValueError(f"the code {code} in shape={codes} is unknown")
    return sizes


def _shape_operand(graph: Graph, data: str, sizes: list[_Size]) -> str:
    """The new shape for ONNX: numbers where that is possible, computed from the input's shape where it is not."""
    # ONNX's 0 keeps the axis at the same place; its -1 is what remains, once.
    numbers = [0 if size == _Size(1, (place,)) else size.factor for place, size in enumerate(sizes)]
    computed = [place for place, size in enumerate(sizes) if size.axes and numbers[place] != 0]
    if not computed:
        return graph.integers(numbers)
    if len(computed) == 1 and -1 not in numbers:
        numbers[computed[0]] = -1
        return graph.integers(numbers)
    parts = []
    for size in sizes:
        part = graph.integers([size.factor])
        for axis in size.axes:
            part = graph.add("Mul", [part, graph.sizes(data, [axis])])
        parts.append(graph.add("Div", [part, graph.integers([size.divisor])]) if size.divisor != 1 else part)
    return graph.add("Concat", parts, axis=0)
