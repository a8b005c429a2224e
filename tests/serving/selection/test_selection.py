from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from forecastle.errors import BadInput, BadOutput
from forecastle.serving.selection import POLICIES, make
from forecastle.serving.selection.policy import Combined, Policy, Selection


def policy(name: str, **options: Any) -> Policy:
    return make(name, options, Random(1))


def said(**outputs: Any) -> dict[str, bytes]:
    return {model: str(output).encode() for model, output in outputs.items()}


def test_a_policy_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="no policy 'bogus'; there are current, weighted, shadow, epsilon_greedy"):
        policy("bogus")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("current", {"epsilon": 0.1}),
        ("weighted", {}),
        ("weighted", {"weights": {"a": -1}}),
        ("weighted", {"weights": {"a": 0}}),
        ("weighted", {"weights": "a"}),
        ("shadow", {"share": 1.5}),
        ("epsilon_greedy", {"epsilon": -0.1}),
        ("epsilon_greedy", {"memory": 0}),
        ("exp3", {"explore": 0}),
        ("exp3", {"rate": 0}),
        ("exp4", {"share": 2}),
        ("exp4", {"explore": 0.1}),
        ("ensemble", {"combine": "median"}),
        ("ensemble", {"tolerance": "wide"}),
    ],
)
def test_an_option_that_is_wrong_is_refused_with_the_policys_name(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=name):
        policy(name, **options)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_answers_what_its_one_model_says(name: str) -> None:
    made = policy(name, **({"weights": {"a": 1}} if name == "weighted" else {}))
    selection = made.select(("a",))
    assert selection.ask == ("a",)
    assert made.combine(selection, said(a=3)).output in {b"3", b"3.0"}
    made.feedback(b"3", dict.fromkeys(made.feedback_models(("a",)), b"3"))


def test_current_asks_the_first_that_was_linked() -> None:
    assert policy("current").select(("b", "a")) == Selection(("b",))


def test_weighted_asks_each_model_as_often_as_it_weighs() -> None:
    made = policy("weighted", weights={"old": 90, "new": 10, "elsewhere": 50})
    asked = Counter(made.select(("old", "new", "linked later")).ask[0] for _ in range(5000))
    assert asked["linked later"] == 0
    assert 0.08 < asked["new"] / 5000 < 0.12


def test_weighted_asks_the_first_where_none_of_those_linked_has_a_weight() -> None:
    assert policy("weighted", weights={"elsewhere": 1}).select(("a", "b")).ask == ("a",)


def test_shadow_asks_the_first_and_the_rest_besides() -> None:
    assert policy("shadow").select(("a", "b", "c")) == Selection(("a",), ("b", "c"))
    made = policy("shadow", share=0.25)
    shadowed = sum(bool(made.select(("a", "b")).shadow) for _ in range(2000))
    assert 0.2 < shadowed / 2000 < 0.3


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (said(a=1, b=2, c=2), Combined(b"2", 2 / 3)),
        (said(a=1, b=2, c=3), Combined(b"1", 1 / 3)),
        (said(b=2, c=3), Combined(b"2", 1 / 3)),
        (said(c=3), Combined(b"3", 1 / 3)),
        (said(a="[1]", b="1.0", c="true"), Combined(b"[1]", 2 / 3)),
        (said(a='{"x":1,"y":2}', b='{"y": 2, "x": 1}', c="null"), Combined(b'{"x":1,"y":2}', 2 / 3)),
    ],
)
def test_a_majority_is_of_equal_values_and_its_confidence_of_all_that_were_asked(
    outputs: dict[str, bytes], expected: Combined
) -> None:
    made = policy("ensemble")
    assert made.combine(made.select(("a", "b", "c")), outputs) == expected


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (said(a=10, b=11, c=9), Combined(b"10.0", 1.0)),
        (said(a=10, b=20), Combined(b"15.0", 0.0)),
        (said(a=10, b=10), Combined(b"10.0", 2 / 3)),
        (said(a="[1, 2]", b="[1, 4]"), Combined(b"[1.0,3.0]", 0.0)),
        (said(a="[5]", b="5", c="5"), Combined(b"5.0", 1.0)),
    ],
)
def test_a_mean_is_of_numbers_one_by_one_and_its_confidence_of_those_near_it(
    outputs: dict[str, bytes], expected: Combined
) -> None:
    made = policy("ensemble", combine="mean")
    assert made.combine(made.select(("a", "b", "c")), outputs) == expected


@pytest.mark.parametrize(
    "outputs", [said(a='"x"', b=1), said(a="true"), said(a="[1,2]", b="[1]"), said(a="null"), said(a="[[1,2],[3,4]]")]
)
def test_what_has_no_mean_is_told(outputs: dict[str, bytes]) -> None:
    made = policy("ensemble", combine="mean")
    with pytest.raises(BadOutput, match="no mean"):
        made.combine(made.select(("a", "b")), outputs)
