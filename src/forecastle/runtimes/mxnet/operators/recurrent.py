"""The fused recurrent layer: MXNet keeps all its weights in one vector."""

from __future__ import annotations

import numpy as np

from forecastle.runtimes.mxnet.graph import Array, Graph
from forecastle.runtimes.mxnet.operators.table import Call, operator

# The order of the gates in MXNet's weights, read in ONNX's: i f g o -> i o f g; r z n -> z r n.
_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}


@operator("RNN", optional=frozenset({2, 3}), outputs=("output", "state_output", "statecell_output"))
def rnn(graph: Graph, call: Call) -> list[str] | str:
    """Layers of LSTM, GRU or plain cells over (time, batch, features); a state that is not given starts at zero."""
    attributes = call.attributes
    mode, layers = attributes.text("mode"), attributes.integer("num_layers")
    attributes.only("mode", *_GATES)
    for name in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
        attributes.only(name)
    attributes.only("use_sequence_length", "False", "0")
    attributes.only("lstm_state_clip_nan", "False", "0")
    hidden, directions = attributes.integer("state_size"), 2 if attributes.flag("bidirectional") else 1
    weights = _Weights(graph.value(call.inputs[1]).ravel(), _GATES[mode], layers, directions, hidden)
    value, *states = call.inputs[0], *(call.inputs[2:] or [""])
    finals: list[list[str]] = []
    for layer in range(layers):
        starts = [_part(graph, state, layer * directions, directions) for state in states]
        operands = [value, *map(graph.constant, weights.layer(layer)), "", *starts]
        outputs = _cell(graph, mode, operands, hidden, directions)
        # (time, directions, batch, hidden) -> (time, batch, directions * hidden)
        turned = graph.add("Transpose", [outputs[0]], perm=(0, 2, 1, 3))
        value = graph.add("Reshape", [turned, graph.integers([0, 0, directions * hidden])])
        finals.append(outputs[1:])
    if not attributes.flag("state_outputs"):
        return value
    return [value, *(graph.add("Concat", list(each), axis=0) for each in zip(*finals, strict=True))]


def _part(graph: Graph, state: str, start: int, count: int) -> str:
    """One layer's part of the initial state."""
    if not state or graph.is_zero(state):
        return ""
    bounds = (graph.integers([bound]) for bound in (start, start + count, 0))
    return graph.add("Slice", [state, *bounds])


def _cell(graph: Graph, mode: str, operands: list[str], hidden: int, directions: int) -> list[str]:
    direction = "bidirectional" if directions == 2 else "forward"
    if mode == "lstm":
        return graph.add_many("LSTM", operands, 3, hidden_size=hidden, direction=direction)
    if mode == "gru":
        return graph.add_many("GRU", operands, 2, hidden_size=hidden, direction=direction, linear_before_reset=1)
    functions = ["Tanh" if mode == "rnn_tanh" else "Relu"] * directions
    return graph.add_many("RNN", operands, 2, hidden_size=hidden, direction=direction, activations=functions)


class _Weights:
    """The vector taken apart: for each layer and direction the two matrices; after all of them, the biases."""

    def __init__(self, flat: Array, gates: tuple[int, ...], layers: int, directions: int, hidden: int) -> None:
        self._gates = gates
        self._directions = directions
        self._hidden = hidden
        rows = len(gates) * hidden
        inner = rows * (hidden * directions + hidden + 2)  # of one direction of a layer above the first
        first = flat.size - (layers - 1) * directions * inner - directions * rows * (hidden + 2)
        features, remainder = divmod(first, directions * rows)
        if features < 1 or remainder:
            raise ValueError(f"its vector of {flat.size} parameters does not fit {layers} layers of {hidden}")
        self._matrices: list[tuple[Array, Array]] = []
        at = 0
        for index in range(layers * directions):
            width = features if index < directions else hidden * directions
            of_input = flat[at : at + rows * width].reshape(rows, width)
            at += of_input.size
            of_state = flat[at : at + rows * hidden].reshape(rows, hidden)
            at += of_state.size
            self._matrices.append((of_input, of_state))
        self._biases = flat[at:].reshape(layers * directions, 2, rows)

    def layer(self, layer: int) -> tuple[Array, Array, Array]:
        """ONNX's W, R and B of a layer, its directions stacked."""
        indices = range(layer * self._directions, (layer + 1) * self._directions)
        of_input, of_state = (
            np.stack([self._in_onnx_order(self._matrices[index][side]) for index in indices]) for side in (0, 1)
        )
        biases = [np.concatenate([self._in_onnx_order(bias) for bias in self._biases[index]]) for index in indices]
        return of_input, of_state, np.stack(biases)

    def _in_onnx_order(self, rows: Array) -> Array:
        parts = rows.reshape(len(self._gates), self._hidden, *rows.shape[1:])
        return parts[list(self._gates)].reshape(rows.shape)
