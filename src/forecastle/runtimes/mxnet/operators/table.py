"""The table of operators: for each MXNet operator's name, the function that writes it as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from forecastle.runtimes.mxnet.attributes import Attributes
from forecastle.runtimes.mxnet.graph import Graph


class Call(NamedTuple):
    """One node to convert: ``op`` as the file spells it, ``inputs`` as values of the graph ("" where absent)."""

    op: str
    name: str
    attributes: Attributes
    inputs: list[str]


Convert = Callable[[Graph, Call], str | list[str]]
"""Adds what the node computes and gives its output, or the list of its outputs where MXNet shows more than one."""


class Operator(NamedTuple):
    """A row of the table.

    ``labels`` are the positions of inputs that only training reads, ``optional`` of those that may be absent;
    ``outputs`` are the names of its outputs, where they are not just numbered.
    """

    convert: Convert
    labels: frozenset[int] = frozenset()
    optional: frozenset[int] = frozenset()
    outputs: tuple[str, ...] = ()

    def output_name(self, node: str, output: int, count: int) -> str:
        """What MXNet calls one of the ``count`` outputs of a node."""
        if output < len(self.outputs):
            return f"{node}_{self.outputs[output]}"
        return f"{node}_output" if count == 1 else f"{node}_output{output}"


OPERATORS: dict[str, Operator] = {}


def operator(
    *names: str,
    labels: frozenset[int] = frozenset(),
    optional: frozenset[int] = frozenset(),
    outputs: tuple[str, ...] = (),
) -> Callable[[Convert], Convert]:
    """Enter the decorated function into the table under these names."""

    def enter(convert: Convert) -> Convert:
        OPERATORS.update(dict.fromkeys(names, Operator(convert, labels, optional, outputs)))
        return convert

    return enter
