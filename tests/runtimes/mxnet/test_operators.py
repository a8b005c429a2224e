"""Every operator against MXNet 1.9.1: its answers for small arrays are recorded in ``operators.npz``.

Each case holds a symbol, inputs, parameters and outputs, under ``<case>/in/<name>`` and so on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from forecastle.runtimes.mxnet.importer import to_onnx
from runtimes.mxnet.converted import run

RECORDED = Path(__file__).parents[2] / "data/graphs/operators.npz"
CASES: dict[str, list[str]] = {}
with np.load(RECORDED) as file:
    for key in file.files:
        CASES.setdefault(key.partition("/")[0], []).append(key)


def read(case: str) -> tuple[bytes, dict[str, dict[str, npt.NDArray[Any]]]]:
    parts: dict[str, dict[str, npt.NDArray[Any]]] = {"in": {}, "param": {}, "out": {}}
    with np.load(RECORDED) as file:
        for key in CASES[case]:
            _, kind, *name = key.split("/", 2)
            if name:
                parts[kind][name[0]] = file[key]
        return file[f"{case}/symbol"].tobytes(), parts


@pytest.mark.parametrize("case", sorted(CASES))
def test_an_operator_answers_as_mxnet_does(case: str) -> None:
    symbol, parts = read(case)
    batch_axis = 1 if case.startswith("rnn") else 0
    shapes = {
        name: tuple(None if axis == batch_axis else size for axis, size in enumerate(array.shape))
        for name, array in parts["in"].items()
    }
    outputs = run(to_onnx(symbol, parts["param"], shapes), parts["in"])
    expected = {
        name if name.endswith("output") or name[-1].isdigit() else f"{name}_output": a
        for name, a in parts["out"].items()
    }
    assert list(outputs) == list(expected)
    for name, answer in expected.items():
        assert outputs[name].shape == answer.shape
        np.testing.assert_allclose(outputs[name], answer, rtol=1e-5, atol=1e-5)


FOR_ONE_BATCH = {
    "dot",
    "dotT",
    "reshape_minus4_2_minus1_minus2",
    "reshape_rev_minus1_0_0",
    "reshape_old",
    "reshape_old2",
}
"""Cases that mix items or ask for one number of them."""
MIXING = ("r_", "rnn", "reshape_minus", "reshape_rev", "trans", "zeros", "prior", "exp")


@pytest.mark.parametrize("case", sorted(name for name in set(CASES) - FOR_ONE_BATCH if not name.startswith(MIXING)))
def test_an_item_is_answered_alike_alone_and_in_any_batch(case: str) -> None:
    symbol, parts = read(case)
    model = to_onnx(symbol, parts["param"], {name: (None, *array.shape[1:]) for name, array in parts["in"].items()})
    three = run(model, {name: array[[1, 0, 1]] for name, array in parts["in"].items()})
    one = run(model, {name: array[1:2] for name, array in parts["in"].items()})
    for name, answer in zip(three, parts["out"].values(), strict=True):
        np.testing.assert_allclose(three[name], answer[[1, 0, 1]], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(one[name], answer[1:2], rtol=1e-5, atol=1e-5)
