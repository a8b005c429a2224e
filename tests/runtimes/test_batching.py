from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadOutput
from forecastle.models.signature import Signature, Tensor
from forecastle.runtimes.batching import Item, Stacker, TensorModel
from forecastle.runtimes.convert import Array


class Recorder:
    """Doubles ``x``, and keeps the shapes it was run with."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, ...]] = []

    def __call__(self, feed: dict[str, Array]) -> Sequence[Any]:
        self.runs.append(feed["x"].shape)
        return [feed["x"] * 2]


def stacker(run: Any, rows: int | None = None, outputs: tuple[Tensor, ...] = (Tensor("y", (None, None)),)) -> Stacker:
    return Stacker(TensorModel(Signature((Tensor("x", (rows, None)),), outputs), run))


def item(*rows: list[float], single: bool = False, lists: bool = False) -> Item:
    value: Any = list(rows) if lists else np.array(rows, "float32")
    return Item((value,), ((len(rows[0]),),), len(rows), single)


def test_items_of_one_shape_run_together_and_each_gets_its_own_rows() -> None:
    run = Recorder()
    items = [item([1, 2], single=True), item([3, 4, 5]), item([6, 7], [8, 9]), item([1, 1], single=True, lists=True)]
    answers = stacker(run).predict(items)
    assert [answer[0].tolist() for answer in answers] == [[2, 4], [[6, 8, 10]], [[12, 14], [16, 18]], [2, 2]]
    assert [answer.single for answer in answers] == [True, False, False, True]
    assert run.runs == [(4, 2), (1, 3)]


def test_lists_are_converted_to_the_models_type() -> None:
    run = Recorder()
    (answer,) = stacker(run).predict([item([1e39, 1], lists=True)])
    assert answer[0].dtype == np.float32
    assert answer[0].tolist() == [[np.inf, 2.0]]


def test_a_model_of_one_row_runs_once_a_row() -> None:
    run = Recorder()
    answers = stacker(run, rows=1).predict([item([1], [2]), item([3], single=True)])
    assert [answer[0].tolist() for answer in answers] == [[[2], [4]], [6]]
    assert run.runs == [(1, 1)] * 3


def test_a_model_of_one_row_without_rows_in_its_output_is_refused_several() -> None:
    with pytest.raises(BadOutput, match="send one record"):
        stacker(lambda feed: [feed["x"].sum()], rows=1).predict([item([1], [2])])


def test_outputs_without_the_inputs_rows_end_stacking(caplog: pytest.LogCaptureFixture) -> None:
    run = Recorder()

    def total(feed: dict[str, Array]) -> Sequence[Any]:
        return [np.asarray(run(feed)[0].sum())]

    model = stacker(total)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            answers = model.predict([item([1, 2]), item([3, 4])])
            assert [float(answer[0]) for answer in answers] == [6, 14]
    assert run.runs == [(2, 2), (1, 2), (1, 2), (1, 2), (1, 2)]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("shape", [(5,), (1, None)])
def test_an_output_of_a_fixed_first_axis_never_stacks(shape: tuple[int | None, ...]) -> None:
    run = Recorder()
    stacker(run, outputs=(Tensor("y", shape),)).predict([item([1, 2]), item([3, 4])])
    assert run.runs == [(1, 2), (1, 2)]


@pytest.mark.parametrize("outputs", [(), (Tensor("y", ()),)])
def test_outputs_of_unknown_shape_stack(outputs: tuple[Tensor, ...]) -> None:
    run = Recorder()
    answers = stacker(run, outputs=outputs).predict([item([1, 2]), item([3, 4])])
    assert [answer[0].tolist() for answer in answers] == [[[2, 4]], [[6, 8]]]
    assert run.runs == [(2, 2)]
