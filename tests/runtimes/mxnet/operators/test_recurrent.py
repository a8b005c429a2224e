from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.runtimes.mxnet.importer import to_onnx
from forecastle.runtimes.mxnet.symbol import SymbolBuilder
from runtimes.mxnet.converted import Array, run

TIME, BATCH, FEATURES, HIDDEN = 3, 2, 4, 5
DRAW = np.random.default_rng(1)
DATA = DRAW.normal(size=(TIME, BATCH, FEATURES)).astype(np.float32)
FLAT = DRAW.normal(size=4 * HIDDEN * (FEATURES + HIDDEN + 2)).astype(np.float32)


def lstm(flat: Array, states: int = 2, zeros: bool = False, **attributes: Any) -> Array:
    builder = SymbolBuilder()
    inputs = [builder.variable("data"), builder.variable("flat")]
    for name in ("h", "c")[:states]:
        inputs.append(builder.op("_zeros", name, [], shape=(1, 0, HIDDEN)) if zeros else builder.variable(name))
    settings = {"mode": "lstm", "num_layers": 1, "state_size": HIDDEN, **attributes}
    symbol = builder.write(builder.op("RNN", "rnn", inputs, **settings))
    return run(to_onnx(symbol, {"arg:flat": flat}, {"data": (TIME, None, FEATURES)}), {"data": DATA})["rnn_output"]


def sigmoid(values: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-values))
    return result


def by_hand() -> Array:
    rows = 4 * HIDDEN
    of_input, rest = np.split(FLAT, [rows * FEATURES])
    of_state, biases = np.split(rest, [rows * HIDDEN])
    hidden = cell = np.zeros((BATCH, HIDDEN), np.float32)
    answers = []
    for step in DATA:
        gates = step @ of_input.reshape(rows, FEATURES).T + hidden @ of_state.reshape(rows, HIDDEN).T
        entry, forget, new, out = np.split(gates + biases[:rows] + biases[rows:], 4, axis=1)
        cell = sigmoid(forget) * cell + sigmoid(entry) * np.tanh(new)
        hidden = sigmoid(out) * np.tanh(cell)
        answers.append(hidden)
    return np.stack(answers)


def test_the_flat_vector_holds_the_gates_input_forget_new_output() -> None:
    np.testing.assert_allclose(lstm(FLAT), by_hand(), rtol=1e-5, atol=1e-6)


def test_states_of_zeros_and_states_that_are_left_out_are_the_same() -> None:
    assert (lstm(FLAT) == lstm(FLAT, zeros=True)).all()
    assert (lstm(FLAT) == lstm(FLAT, states=0)).all()


@pytest.mark.parametrize("size", [FLAT.size - 1, 3])
def test_a_vector_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(BadArtifact, match=rf"its vector of {size} parameters does not fit 1 layers of {HIDDEN}"):
        lstm(FLAT[:size])


@pytest.mark.parametrize("setting", [{"projection_size": 3}, {"mode": "other"}, {"use_sequence_length": True}])
def test_what_the_layer_cannot_express_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(LoadFailed, match=next(iter(setting))):
        lstm(FLAT, **setting)
