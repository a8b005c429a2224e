"""Turns a symbol and its parameters into an ONNX model, so that no MXNet is needed to serve it.

Only what the heads need for serving is converted: labels and what leads to them stay out. Every problem is looked for
before the first is reported, so that one message tells all that stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import onnx

from forecastle.errors import BadArtifact, LoadFailed, SourceNotFound
from forecastle.runtimes.mxnet.attributes import Unsupported
from forecastle.runtimes.mxnet.graph import Array, Graph, Shape
from forecastle.runtimes.mxnet.operators import OPERATORS
from forecastle.runtimes.mxnet.operators.table import Call
from forecastle.runtimes.mxnet.symbol import Node, Symbol, parse


def to_onnx(symbol: bytes | Path, params: Mapping[str, Array], inputs: Mapping[str, Shape]) -> onnx.ModelProto:
    """The model in ONNX (opset 17), float32 throughout.

    Its inputs are exactly ``inputs``, in that order; a size that is ``None`` is free. Its outputs are the symbol's
    heads under MXNet's names (``softmax_output``). ``params`` are as `params.load` gives them; those the symbol does
    not use are ignored, the others become initializers.

    Raises `BadArtifact` for a symbol, parameters and inputs that contradict each other, and `LoadFailed` for an
    operator, or an attribute of one, that cannot be expressed; each message names everything of its kind.
    """
    origin = symbol.name if isinstance(symbol, Path) else "the symbol"
    parsed = parse(_read(symbol) if isinstance(symbol, Path) else symbol, origin)
    parameters = {name.removeprefix("arg:").removeprefix("aux:"): array for name, array in params.items()}
    conversion = _Conversion(parsed, origin, parameters, inputs)
    conversion.check_inputs()
    conversion.check_operators()
    conversion.check_parameters()
    return conversion.run()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceNotFound(f"cannot read the symbol {path.name}: {error.strerror}") from error


class _Conversion:
    def __init__(
        self, symbol: Symbol, origin: str, parameters: Mapping[str, Array], inputs: Mapping[str, Shape]
    ) -> None:
        self.nodes = symbol.nodes
        self.heads = symbol.heads
        self.origin = origin
        self.parameters = parameters
        self.inputs = inputs
        self.needed = self._needed()

    def _needed(self) -> list[int]:
        """The indices of the nodes that serving needs, in order."""
        wanted = {head.node for head in self.heads}
        for index in range(len(self.nodes) - 1, -1, -1):
            if index in wanted:
                node = self.nodes[index]
                labels = OPERATORS[node.op].labels if node.op in OPERATORS else ()
                wanted.update(edge.node for place, edge in enumerate(node.inputs) if place not in labels)
        return sorted(wanted)

    def check_inputs(self) -> None:
        """The inputs are variables, and free ones."""
        variables = {node.name for node in self.nodes if node.is_variable}
        free = variables - self.parameters.keys()
        if unknown := [name for name in self.inputs if name not in free]:
            raise BadArtifact(
                f"{self.origin} has no input {_names(unknown)}: "
                f"its variables without parameters are {_names(sorted(free))}"
            )

    def check_operators(self) -> None:
        """All operators are in the table."""
        unknown: dict[str, str] = {}
        for index in self.needed:
            node = self.nodes[index]
            if not node.is_variable and node.op not in OPERATORS:
                unknown.setdefault(node.op, node.name)
        if unknown:
            raise self._refused(f"the operator {op!r} (node {name!r})" for op, name in unknown.items())

    def check_parameters(self) -> None:
        """Every variable is an input or a parameter, unless its one reader can do without."""
        missing: dict[str, None] = {}
        for index in self.needed:
            node = self.nodes[index]
            operator = OPERATORS.get(node.op)
            for place, edge in enumerate(node.inputs):
                source = self.nodes[edge.node]
                dispensable = operator is not None and place in operator.labels | operator.optional
                if source.is_variable and not dispensable and not self._has(source):
                    missing[source.name] = None
        if missing:
            raise BadArtifact(
                f"{self.origin} needs the variable {_names(missing)}, "
                "which is neither among the parameters nor an input of the signature"
            )

    def _has(self, variable: Node) -> bool:
        return variable.name in self.inputs or variable.name in self.parameters

    def run(self) -> onnx.ModelProto:
        """Convert node by node; one that cannot be converted takes those after it along, the rest is still tried."""
        graph = Graph(self.parameters, self.inputs)
        values: dict[int, list[str]] = {}
        refusals: list[str] = []
        for index in self.needed:
            node = self.nodes[index]
            if node.is_variable:
                values[index] = [self._variable(graph, node)]
            elif (inputs := self._values_of(node, values)) is not None:
                try:
                    values[index] = self._convert(graph, node, inputs)
                except Unsupported as reason:
                    refusals.append(f"{reason} (node {node.name!r}, {node.op})")
        if not refusals:
            try:
                return graph.model(self._outputs(values))
            except Unsupported as reason:
                refusals.append(str(reason))
        raise self._refused(refusals)

    def _outputs(self, values: Mapping[int, list[str]]) -> dict[str, str]:
        """The heads' values, by MXNet's names for them."""
        outputs: dict[str, str] = {}
        for head in self.heads:
            found, node = values[head.node], self.nodes[head.node]
            operator = OPERATORS.get(node.op)
            name = operator.output_name(node.name, head.output, len(found)) if operator else f"{node.name}_output"
            if head.output >= len(found) or name in outputs or name in self.inputs:
                raise BadArtifact(f"{self.origin}: the head {name!r} is not an output of its own")
            outputs[name] = found[head.output]
        return outputs

    def _variable(self, graph: Graph, node: Node) -> str:
        if node.name in self.inputs:
            return node.name
        return graph.parameter(node.name) if node.name in self.parameters else ""

    def _values_of(self, node: Node, values: Mapping[int, list[str]]) -> list[str] | None:
        """The node's inputs; ``None`` if one of them could not be converted."""
        labels = OPERATORS[node.op].labels
        inputs: list[str] = []
        for place, edge in enumerate(node.inputs):
            if place in labels:
                inputs.append("")
            elif edge.node not in values:
                return None
            elif edge.output >= len(values[edge.node]):
                raise BadArtifact(
                    f"{self.origin}: the node {node.name!r} reads output {edge.output} of "
                    f"{self.nodes[edge.node].name!r}, which has {len(values[edge.node])}"
                )
            else:
                inputs.append(values[edge.node][edge.output])
        return inputs

    def _convert(self, graph: Graph, node: Node, inputs: list[str]) -> list[str]:
        graph.scope = node.name
        try:
            outputs = OPERATORS[node.op].convert(graph, Call(node.op, node.name, node.attributes, inputs))
            node.attributes.refuse_unread()
        except (LookupError, ValueError, TypeError, ArithmeticError) as error:
            raise BadArtifact(f"{self.origin}: the node {node.name!r} ({node.op}) cannot be read: {error}") from error
        return [outputs] if isinstance(outputs, str) else outputs

    def _refused(self, reasons: Iterable[str]) -> LoadFailed:
        return LoadFailed(
            f"{self.origin} cannot be served: {', '.join(reasons)} is not supported by the built-in reader of MXNet "
            "models, and the MXNet engine itself is not available here"
        )


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
