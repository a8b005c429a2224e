"""Operators that take arrays apart, put them together and pad them."""

from __future__ import annotations

from forecastle.runtimes.mxnet.graph import Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator

_MOST_PARTS = 1 << 16
_FAR = 1 << 62  # beyond any axis: to the end


@operator("Concat", "concat")
def concat(graph: Graph, call: Call) -> str:
    """Along an axis, the channels by default."""
    return graph.add("Concat", call.inputs, axis=call.attributes.integer("dim", 1))


@operator("SliceChannel", "split")
def slice_channel(graph: Graph, call: Call) -> list[str]:
    """Equal parts along an axis; the axis itself may go with them."""
    count, axis = call.attributes.integer("num_outputs"), call.attributes.integer("axis", 1)
    size = graph.shape(call.inputs[0])[axis]
    if not 1 <= count <= _MOST_PARTS or (size is not None and size % count):
        raise ValueError(f"an axis of size {size} cannot be split into {count} equal parts")
    parts = graph.add_many("Split", call.inputs, count, axis=axis)
    if call.attributes.flag("squeeze_axis"):
        return [graph.add("Squeeze", [part, graph.integers([axis])]) for part in parts]
    return parts


@operator("slice_axis")
def slice_axis(graph: Graph, call: Call) -> str:
    """A range of one axis."""
    attributes = call.attributes
    end = attributes.integer("end") if attributes.has("end") else _FAR
    bounds = (attributes.integer("begin"), end, attributes.integer("axis"))
    return graph.add("Slice", [*call.inputs, *(graph.integers([bound]) for bound in bounds)])


@operator("slice", "crop")
def slice_(graph: Graph, call: Call) -> str:
    """A range with a step of each leading axis; ``None`` is that side's end."""
    attributes = call.attributes
    begins, ends = attributes.optional_integers("begin"), attributes.optional_integers("end")
    steps = [step or 1 for step in attributes.optional_integers("step") or (1,) * len(begins)]
    if not len(begins) == len(ends) == len(steps):
        raise ValueError("begin, end and step are of different lengths")
    first = [(0 if step > 0 else _FAR) if at is None else at for at, step in zip(begins, steps, strict=True)]
    last = [(_FAR if step > 0 else -_FAR) if at is None else at for at, step in zip(ends, steps, strict=True)]
    operands = [graph.integers(numbers) for numbers in (first, last, range(len(first)), steps)]
    return graph.add("Slice", [*call.inputs, *operands])


@operator("slice_like")
def slice_like(graph: Graph, call: Call) -> str:
    """As much of the first input as the second is large."""
    data, like = call.inputs
    axes = call.attributes.integers("axes", tuple(range(len(graph.shape(like)))))
    operands = [graph.integers([0] * len(axes)), graph.sizes(like, axes), graph.integers(axes)]
    return graph.add("Slice", [data, *operands])


@operator("Pad", "pad")
def pad(graph: Graph, call: Call) -> str:
    """Constant numbers, the edge or a reflection around an array."""
    attributes = call.attributes
    attributes.only("mode", "constant", "edge", "reflect")
    width = attributes.integers("pad_width")  # (before, after) of each axis in turn
    operands = [graph.integers([*width[::2], *width[1::2]]), graph.constant(attributes.number("constant_value", 0))]
    return graph.add("Pad", [*call.inputs, *operands], mode=attributes.text("mode"))
