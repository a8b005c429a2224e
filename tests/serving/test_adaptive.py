"""The adaptive policy by itself, and in the batcher: what pays, what is in time, and what must never be."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import Overloaded
from forecastle.messages import Response
from forecastle.serving.adaptive import AdaptiveBatch
from forecastle.serving.batcher import Batcher
from forecastle.serving.policy import PIPELINE_SECONDS
from forecastle.serving.queue import Queue
from forecastle.serving.slot import Slot
from serving.fakes import Collector, FakeClock, FakeLink, answer

Cost = Callable[[int], float]
PLENTY = 60.0


def saturated(policy: AdaptiveBatch, cost: Cost, batches: int = 200, slo: float = PLENTY) -> list[int]:
    """Run batches while so many wait that the time of the first ones is almost up."""
    sizes = []
    for _ in range(batches):
        size = policy.size(10_000, slo / 100, slo)
        sizes.append(size)
        policy.observe(size, cost(size), cost(size))
    return sizes


def test_the_first_batch_is_one_request() -> None:
    assert AdaptiveBatch(32).size(100, PLENTY, PLENTY) == 1


def test_a_batch_is_what_waits_where_all_of_it_pays() -> None:
    policy = AdaptiveBatch(64)
    saturated(policy, lambda _: 0.02)
    assert [policy.size(share, PLENTY, PLENTY) for share in (1, 7, 64, 65)] == [1, 7, 64, 64]


def test_sizes_grow_while_that_pays_and_by_no_more_than_twice() -> None:
    sizes = saturated(AdaptiveBatch(256), lambda n: 0.01 + 0.0001 * n)
    assert max(sizes) == 256
    assert all(size <= 2 * max(sizes[:i]) for i, size in enumerate(sizes) if i)


def test_batches_stay_small_where_larger_ones_gain_nothing() -> None:
    sizes = saturated(AdaptiveBatch(256), lambda n: 0.01 * n)
    assert max(sizes) <= 2
    assert sum(sizes[50:]) <= 1.1 * len(sizes[50:])


def test_a_larger_batch_must_gain_a_few_per_cent() -> None:
    policy = AdaptiveBatch(256)
    saturated(policy, lambda n: 0.001 + 0.01 * n, batches=1000)
    assert policy.size(10_000, PLENTY, PLENTY) <= 4


def test_a_batch_takes_about_half_of_what_a_request_has() -> None:
    policy = AdaptiveBatch(256)
    sizes = saturated(policy, lambda n: 0.01 + 0.001 * n, slo=0.1)
    assert 36 <= sizes[-1] <= 48


def test_a_batch_fits_the_least_that_one_of_its_requests_has_left() -> None:
    policy = AdaptiveBatch(256)
    saturated(policy, lambda n: 0.01 + 0.001 * n, slo=0.1)
    for n in list(range(1, 20)) * 10:
        policy.observe(n, 0.01 + 0.001 * n, 0.01 + 0.001 * n)
    assert 8 <= policy.size(30, 0.02, 0.1) <= 10


def test_where_more_than_a_full_batch_waits_the_first_ones_do_not_make_it_smaller() -> None:
    policy = AdaptiveBatch(256)
    saturated(policy, lambda n: 0.01 + 0.001 * n, slo=0.1)
    size = policy.size(1000, 0.02, 0.1)
    assert size >= 36
    assert policy.least(size) > 0.02


def test_one_slow_batch_changes_nothing() -> None:
    policy = AdaptiveBatch(64)
    before = saturated(policy, lambda _: 0.02, slo=0.1)[-1]
    policy.observe(before, 2.0, 2.0)
    assert policy.size(10_000, 0.1, 0.1) == before


def test_a_new_regime_is_learned_within_fifty_batches() -> None:
    policy = AdaptiveBatch(256)
    saturated(policy, lambda n: 0.001 + 0.0001 * n, slo=0.1)
    slow = saturated(policy, lambda n: 0.010 + 0.001 * n, batches=50, slo=0.1)
    assert 30 <= slow[-1] <= 48
    quick = saturated(policy, lambda n: 0.001 + 0.0001 * n, batches=50, slo=0.1)
    assert quick[-1] >= 144  # which answers 97 % of what 256 does


def test_a_step_is_found_and_kept_to() -> None:
    policy = AdaptiveBatch(64)
    sizes = saturated(policy, lambda n: 0.03 if n <= 16 else 0.06, batches=400, slo=0.1)
    assert sum(size > 16 for size in sizes) < 30
    assert set(sizes[50:250]) == {16}


def test_a_size_that_was_slow_at_first_is_tried_again() -> None:
    policy = AdaptiveBatch(64)
    seen: set[int] = set()

    def warming(n: int) -> float:
        first = n not in seen
        seen.add(n)
        return 1.0 if first else 0.02

    assert saturated(policy, warming, batches=400)[-1] == 64


def test_only_a_quick_model_is_sent_its_next_batch_ahead() -> None:
    policy = AdaptiveBatch(32)
    assert policy.depth() == 1
    policy.observe(1, PIPELINE_SECONDS / 10, PIPELINE_SECONDS)
    assert policy.depth() == 2


@given(
    st.integers(1, 300),
    st.lists(
        st.tuples(
            st.integers(1, 10_000), st.floats(-1, 100), st.floats(1e-6, 100), st.floats(0, 100), st.floats(0, 100)
        ),
        max_size=200,
    ),
)
def test_whatever_comes_a_batch_is_at_least_one_and_at_most_what_waits_and_the_limit(
    limit: int, steps: list[tuple[int, float, float, float, float]]
) -> None:
    policy = AdaptiveBatch(limit)
    for share, budget, whole, seconds, more in steps:
        size = policy.size(share, budget, whole)
        assert 1 <= size <= min(share, limit)
        assert policy.least(size) >= 0.0
        policy.observe(size, seconds, seconds + more)
        assert 1 <= policy.enough <= limit
        assert policy.item_seconds >= 0.0


def weight(thing: object) -> int:
    """Bytes of an object and all that it holds."""
    if isinstance(thing, list | tuple):
        return sys.getsizeof(thing) + sum(weight(part) for part in thing)
    names: list[str] = [*getattr(thing, "__slots__", ()), *getattr(thing, "__dict__", ())]
    return sys.getsizeof(thing) + sum(weight(getattr(thing, name)) for name in names)


def test_memory_is_bounded() -> None:
    policy = AdaptiveBatch(256)
    saturated(policy, lambda n: 0.0001 + 0.00001 * n, batches=3000)
    before = weight(policy)
    saturated(policy, lambda n: 0.0002 + 0.00001 * n, batches=30_000)
    assert weight(policy) <= before + 2000


class Bench:
    """A batcher with the adaptive policy over a clock moved by hand, and a replica of a certain cost."""

    def __init__(self, cost: Cost, *, limit: int = 64, delay: float = 0.0) -> None:
        self.clock = FakeClock()
        self.collector = Collector(self.clock)
        self.policy = AdaptiveBatch(limit, delay)
        self.batcher = Batcher("m", policy=self.policy, queue=Queue(10_000), clock=self.clock, limit=1000)
        self.link = FakeLink()
        self.slot = Slot(self.link, lambda: None)
        self.cost = cost
        self.made = 0
        self.batcher.attach(self.slot)
        self.clock.turn()

    def submit(self, count: int, timeout: float = PLENTY) -> list[str]:
        names = [f"r{self.made + i}" for i in range(count)]
        self.made += count
        for name in names:
            self.batcher.submit(self.collector.ticket(name, timeout))
        self.clock.turn()
        return names

    def work(self) -> None:
        """Let the replica answer all that it is sent."""
        while self.slot.flights:
            batch, requests = self.link.sent[-len(self.slot.flights)]
            seconds = self.cost(len(requests))
            self.clock.advance(seconds)
            assert self.batcher.answered(self.slot, batch, answer(requests), seconds)
            self.clock.turn()

    def answered(self, names: list[str]) -> int:
        return sum(isinstance(self.collector.one(name), Response) for name in names)


def test_the_batcher_learns_and_sends_larger_batches() -> None:
    bench = Bench(lambda n: 0.01 + 0.0001 * n)
    names = bench.submit(2000)
    bench.work()
    assert bench.answered(names) == 2000
    assert max(len(requests) for _, requests in bench.link.sent) == 64


@given(st.lists(st.floats(0.0, 0.05), max_size=60), st.floats(0.0001, 0.05), st.floats(0.0, 0.01))
def test_a_lone_request_is_never_held_and_never_has_company(gaps: list[float], fixed: float, each: float) -> None:
    bench = Bench(lambda n: fixed + each * n)
    for gap in gaps:
        bench.clock.advance(gap)
        (name,) = bench.submit(1)
        assert [request.id for request in bench.link.sent[-1][1]] == [name]
        bench.work()
        assert bench.answered([name]) == 1


def test_a_delay_ends_when_as_many_wait_as_pay() -> None:
    bench = Bench(lambda n: 0.01 * n, delay=0.5)
    for _ in range(20):
        bench.submit(2)
        if not bench.slot.flights:
            bench.clock.advance(0.5)
        bench.work()
    sent = len(bench.link.sent)
    bench.submit(2)
    assert len(bench.link.sent) == sent + 1
    bench.work()


def test_a_delay_holds_a_lone_request_no_longer() -> None:
    bench = Bench(lambda _: 0.01, delay=0.5)
    bench.submit(1)
    bench.clock.advance(0.49)
    assert bench.link.sent == []
    bench.clock.advance(0.02)
    assert len(bench.link.sent) == 1


def test_those_whose_time_is_up_give_way_at_once_to_those_behind_them() -> None:
    bench = Bench(lambda n: 0.01 + 0.001 * n)
    bench.submit(500)
    bench.work()
    running = bench.submit(1)
    late = bench.submit(10, timeout=0.014)
    good = bench.submit(200, timeout=0.5)
    bench.work()
    assert bench.answered(running + good) == 201
    errors = [bench.collector.one(name) for name in late]
    assert all(isinstance(error, Overloaded) and error.retry_after for error in errors)


def test_the_last_request_is_tried_however_little_time_it_has() -> None:
    bench = Bench(lambda _: 0.05)
    bench.submit(10)
    bench.work()
    bench.submit(1, timeout=0.01)
    assert len(bench.link.sent[-1][1]) == 1
    assert bench.slot.flights


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_a_small_limit_is_kept(limit: int) -> None:
    bench = Bench(lambda _: 0.01, limit=limit)
    bench.submit(100)
    bench.work()
    assert max(len(requests) for _, requests in bench.link.sent) == limit
