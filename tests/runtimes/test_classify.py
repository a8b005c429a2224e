from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.runtimes.classify import classifies, top_five

LABELS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu"]


def test_the_five_best_come_best_first() -> None:
    (row,) = top_five(np.array([[0.0, 0.5, 0.125, 0.25, 1.0, -1.0, 2.0]]), LABELS)
    assert row == [
        {"class": "gnu", "probability": 2.0},
        {"class": "eel", "probability": 1.0},
        {"class": "bee", "probability": 0.5},
        {"class": "dog", "probability": 0.25},
        {"class": "cat", "probability": 0.125},
    ]


def test_equal_scores_keep_the_order_of_the_labels() -> None:
    (row,) = top_five(np.zeros((1, 7), "float32"), LABELS)
    assert [entry["class"] for entry in row] == LABELS[:5]


def test_a_score_that_is_no_number_comes_last() -> None:
    (row,) = top_five(np.array([[np.nan, 0.1, 0.2]]), LABELS[:3])
    assert [entry["class"] for entry in row] == ["cat", "bee", "ant"]


def test_a_model_of_fewer_labels_gives_them_all() -> None:
    assert [[entry["class"] for entry in row] for row in top_five(np.array([[0.1], [0.2]]), ["ant"])] == [
        ["ant"],
        ["ant"],
    ]


@given(st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=7, max_size=7), min_size=1, max_size=4))
def test_it_is_the_sorted_list_cut_at_five(rows: list[list[float]]) -> None:
    for row, named in zip(rows, top_five(np.array(rows, "float32"), LABELS), strict=True):
        best = sorted(zip(row, LABELS, strict=True), key=lambda pair: -pair[0])[:5]
        assert [(entry["probability"], entry["class"]) for entry in named] == best


@pytest.mark.parametrize(
    ("shape", "dtype", "scores"),
    [
        ((2, 7), "float32", True),
        ((2, 7), "float16", True),
        ((2, 7, 1, 1), "float32", True),
        ((2, 7), "int64", False),
        ((2, 6), "float32", False),
        ((2, 7, 2), "float32", False),
        ((7,), "float32", False),
    ],
)
def test_scores_are_floats_with_as_many_columns_as_labels(shape: tuple[int, ...], dtype: str, scores: bool) -> None:
    found = classifies(np.zeros(shape, dtype), LABELS)
    assert (found is not None) is scores
    assert found is None or found.shape == (2, 7)
