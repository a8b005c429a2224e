"""The signature of an MXNet network that comes without one, as far as symbol and parameters tell it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from forecastle.errors import BadArtifact
from forecastle.models import mms
from forecastle.models.descriptions import of_shapes
from forecastle.models.signature import Signature
from forecastle.runtimes.mxnet.graph import Array
from forecastle.runtimes.mxnet.operators import OPERATORS
from forecastle.runtimes.mxnet.params import load
from forecastle.runtimes.mxnet.symbol import Node, Symbol, parse

_SAME_SHAPE = {
    *("BatchNorm", "Activation", "Cast", "Dropout", "BlockGrad", "identity", "_copy", "clip", "LeakyReLU"),
    *("_minus_scalar", "_plus_scalar", "_mul_scalar", "_div_scalar", "broadcast_sub", "broadcast_div"),
}
"""Operators whose first input has the shape of their output."""

_Known = tuple["int | str | None", ...]
"""Sizes; ``None`` for any, ``"?"`` for one that is not known."""


def derive(directory: Path, origin: str) -> Signature:
    """Return the signature of the archive unpacked in ``directory``, without outputs.

    Its inputs are the variables that serving needs and that are no parameters. Their shapes come from the variables
    themselves or from the weights that first meet them.

    Raises:
        BadArtifact: a size cannot be told, as that of pictures mostly cannot; the message says what is known.
    """
    files = mms.find_files(directory, origin, described=False)
    symbol = parse(files.symbol.read_bytes(), files.symbol.name)
    names = {name.removeprefix("arg:").removeprefix("aux:"): array for name, array in load(files.params).items()}
    known = {node.name: _shape(index, symbol, names) for index, node in _inputs(symbol, names)}
    if not known:
        raise BadArtifact(f"{origin}: {files.symbol.name} has no input, all of its variables have parameters")
    unknown = [name for name, shape in known.items() if shape is None or "?" in shape]
    if unknown:
        listed = ", ".join(f"{name!r} {_show(known[name])}" for name in unknown)
        shapes = " ".join(f"--shape {name}={_example(known[name])}" for name in known)
        raise BadArtifact(
            f"{origin} has no {mms.SIGNATURE}, and the network does not tell all sizes of its inputs, only {listed}; "
            f"name a signature with --signature, or give each shape, the batch first as 0, as in {shapes}"
        )
    return of_shapes(
        {name: tuple(size if isinstance(size, int) else None for size in shape or ()) for name, shape in known.items()}
    )


def _inputs(symbol: Symbol, parameters: Mapping[str, Array]) -> list[tuple[int, Node]]:
    """The variables that must be fed, in the symbol's order."""
    wanted = {head.node for head in symbol.heads}
    for index in range(len(symbol.nodes) - 1, -1, -1):
        if index not in wanted:
            continue
        node = symbol.nodes[index]
        operator = OPERATORS.get(node.op)
        spared = operator.labels | operator.optional if operator else frozenset()
        for place, edge in enumerate(node.inputs):
            if not (place in spared and symbol.nodes[edge.node].is_variable and _free(symbol, edge.node, parameters)):
                wanted.add(edge.node)
    return [(index, symbol.nodes[index]) for index in sorted(wanted) if _free(symbol, index, parameters)]


def _free(symbol: Symbol, index: int, parameters: Mapping[str, Array]) -> bool:
    return symbol.nodes[index].is_variable and symbol.nodes[index].name not in parameters


def _shape(index: int, symbol: Symbol, parameters: Mapping[str, Array]) -> _Known | None:
    try:
        stated = symbol.nodes[index].attributes.integers("__shape__")
    except ValueError:
        stated = ()
    if stated:
        return (None, *(size if size > 0 else None for size in stated[1:]))
    for place, node in enumerate(symbol.nodes):
        if not node.inputs or node.inputs[0].node != index:
            continue
        weight = parameters.get(symbol.nodes[node.inputs[1].node].name) if len(node.inputs) > 1 else None
        if node.op == "FullyConnected" and weight is not None and weight.ndim == 2:
            return (None, weight.shape[1])
        if node.op == "Convolution" and weight is not None and weight.ndim > 2:
            channels = weight.shape[1] * node.attributes.integer("num_group", 1)
            return (None, channels, *("?" for _ in weight.shape[2:]))
        if node.op in _SAME_SHAPE:
            return _shape(place, symbol, parameters)
    return None


def _show(shape: _Known | None) -> str:
    return "nothing" if shape is None else f"[{', '.join(str(size or 0) for size in shape)}]"


def _example(shape: _Known | None) -> str:
    return "0,…" if shape is None else ",".join("…" if size == "?" else str(size or 0) for size in shape)
