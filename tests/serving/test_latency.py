"""What batches cost, learned: every size that was seen, those between, new regimes, and batches that were held up."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.serving.latency import MEMORY, STREAK, Latency, ladder


@pytest.mark.parametrize("limit", [1, 2, 16, 17, 64, 100, 256, 1000])
def test_the_ladder_goes_from_one_to_the_limit_in_steps_of_an_eighth(limit: int) -> None:
    sizes = ladder(limit)
    assert (sizes[0], sizes[-1]) == (1, limit)
    assert all(below < above <= max(below + 1, below * 1.125) for below, above in pairwise(sizes))


def learned(latency: Latency, cost: dict[int, float], times: int = 10) -> Latency:
    for _ in range(times):
        for size, seconds in cost.items():
            latency.observe(size, seconds)
    return latency


def test_what_was_seen_is_known_and_what_lies_between_is_on_a_line() -> None:
    curve = learned(Latency(64), {2: 0.02, 8: 0.08}).curve()
    assert curve.means == pytest.approx([0.02, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08])


def test_a_size_between_two_rungs_counts_for_the_upper_one() -> None:
    latency = learned(Latency(64), {32: 0.01, 33: 0.02})
    curve = latency.curve()
    assert curve.means[latency.rung(32)] == pytest.approx(0.01)
    assert curve.means[latency.rung(36)] == pytest.approx(0.02)


def test_the_tail_lies_above_almost_all_batches() -> None:
    random = Random(1)
    latency = Latency(8)
    seconds = [random.gauss(0.1, 0.01) for _ in range(2000)]
    for one in seconds:
        latency.observe(4, one)
    tail = latency.curve().tails[latency.rung(4)]
    assert sum(one <= tail for one in seconds) > 0.97 * len(seconds)
    assert tail < 0.15


def test_a_batch_that_was_held_up_is_hardly_felt() -> None:
    latency = learned(Latency(64), {4: 0.01, 8: 0.015, 16: 0.025})
    before = latency.curve()
    latency.observe(8, 5.0)
    after = latency.curve()
    assert after.means == pytest.approx(before.means, rel=0.05)
    assert latency.regimes == 0


def test_a_size_that_is_hardly_known_and_was_held_up_is_taken_to_cost_what_the_next_larger_does() -> None:
    latency = learned(Latency(64), {4: 0.01, 16: 0.025})
    latency.observe(8, 5.0)
    assert latency.curve().means[latency.rung(16)] == pytest.approx(0.025, rel=0.1)


def test_the_first_batch_of_a_size_may_pay_for_all_later_ones() -> None:
    latency = Latency(8)
    latency.observe(1, 3.0)
    latency.observe(1, 0.01)
    assert latency.curve().means == pytest.approx([0.01])


@pytest.mark.parametrize("factor", [0.2, 3.0, 20.0])
def test_a_streak_is_a_new_regime_of_which_smaller_sizes_are_known_in_proportion(factor: float) -> None:
    latency = learned(Latency(64), {4: 0.01, 8: 0.015, 16: 0.025}, times=MEMORY)
    for _ in range(STREAK):
        latency.observe(8, 0.015 * factor)
    assert latency.regimes == 1
    assert latency.curve().means[3::4] == pytest.approx([0.01 * factor, 0.015 * factor], rel=0.2)
    assert latency.count(latency.rung(16)) == 0


def test_old_batches_fade() -> None:
    latency = learned(Latency(8), {4: 0.010}, times=1000)
    learned(latency, {4: 0.012}, times=5 * MEMORY)
    assert latency.curve().means[latency.rung(4)] == pytest.approx(0.012, rel=0.01)


def test_what_a_further_request_adds_is_foretold_from_the_upper_half() -> None:
    latency = learned(Latency(64), {n: 0.01 + 0.001 * n for n in (1, 2, 4, 8, 16)})
    assert latency.curve().slope() == pytest.approx(0.001)


def test_larger_sizes_can_be_forgotten() -> None:
    latency = learned(Latency(64), {4: 0.01, 16: 0.02})
    latency.forget_above(4)
    assert len(latency.curve().means) == 4


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.floats(0, 1e6) | st.sampled_from([0.0, 1e-9, 0.01, 0.02])),
        min_size=1,
        max_size=300,
    )
)
def test_whatever_is_seen_the_curve_never_falls_and_is_never_zero(seen: list[tuple[int, float]]) -> None:
    latency = Latency(40)
    for size, seconds in seen:
        latency.observe(size, seconds)
    curve = latency.curve()
    assert len(curve.means) == len(curve.tails) <= len(latency.sizes)
    assert all(0.0 < mean <= tail * (1 + 1e-9) < math.inf for mean, tail in zip(curve.means, curve.tails, strict=True))
    for values in (curve.means, curve.tails):
        assert all(below <= above * (1 + 1e-9) for below, above in pairwise(values))
    assert curve.slope() >= -1e-9
