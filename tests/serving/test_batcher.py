"""The batcher over a clock moved by hand: who runs when, and that every request leaves exactly once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forecastle.errors import BadInput, Cancelled, DeadlineExceeded, Draining, NoReplica, Overloaded, ReplicaDied
from forecastle.messages import Response
from forecastle.serving.batcher import ATTEMPTS, GRACE, Batcher
from forecastle.serving.policy import FixedBatch
from forecastle.serving.queue import Queue
from forecastle.serving.slot import Slot
from serving.fakes import Collector, FakeClock, FakeLink, answer


class Bench:
    """A batcher, its clock, and replicas that answer when told to."""

    def __init__(self, *, batch_size: int = 4, delay: float = 0.0, queue: int = 100, limit: float = 10.0) -> None:
        self.clock = FakeClock()
        self.collector = Collector(self.clock)
        policy = FixedBatch(batch_size, delay)
        self.batcher = Batcher("m", policy=policy, queue=Queue(queue), clock=self.clock, limit=limit)
        self.hung: list[Slot] = []

    def replica(self) -> tuple[Slot, FakeLink]:
        link = FakeLink()
        slot = Slot(link, lambda: self.hung.append(slot))
        self.batcher.attach(slot)
        self.clock.turn()
        return slot, link

    def submit(self, *names: str, timeout: float = 60.0) -> None:
        for name in names:
            self.batcher.submit(self.collector.ticket(name, timeout))
        self.clock.turn()

    def finish(self, slot: Slot, link: FakeLink, seconds: float = 0.01) -> None:
        batch, requests = link.sent[-len(slot.flights)]
        assert self.batcher.answered(slot, batch, answer(requests), seconds)
        self.clock.turn()


def names(link: FakeLink) -> list[list[str]]:
    return [[request.id for request in requests] for _, requests in link.sent]


def test_a_lone_request_is_sent_at_once() -> None:
    bench = Bench()
    _, link = bench.replica()
    bench.submit("a")
    assert names(link) == [["a"]]


def test_what_waits_while_a_replica_is_busy_goes_as_one_batch_within_the_limit() -> None:
    bench = Bench(batch_size=4)
    slot, link = bench.replica()
    bench.submit("a", "b", "c", "d", "e", "f")
    bench.finish(slot, link)
    assert names(link) == [["a", "b", "c", "d"], ["e", "f"]]


def test_free_replicas_share_what_waits() -> None:
    bench = Bench(batch_size=32)
    (_, one), (_, two) = bench.replica(), bench.replica()
    bench.submit("a", "b", "c")
    assert names(one) == [["a", "b"]]
    assert names(two) == [["c"]]


def test_the_earliest_deadline_goes_first() -> None:
    bench = Bench(batch_size=1)
    slot, link = bench.replica()
    bench.submit("first")
    bench.submit("late", timeout=50)
    bench.submit("soon", timeout=5)
    bench.finish(slot, link)
    assert names(link)[1] == ["soon"]


def test_a_quick_replica_gets_its_next_batch_while_it_works() -> None:
    bench = Bench(batch_size=1)
    slot, link = bench.replica()
    bench.submit("a")
    bench.finish(slot, link, seconds=0.0001)
    bench.submit("b", "c", "d")
    assert names(link) == [["a"], ["b"], ["c"]]


def test_a_delay_lets_a_batch_fill_and_no_longer() -> None:
    bench = Bench(batch_size=3, delay=0.5)
    slot, link = bench.replica()
    bench.submit("a")
    bench.clock.advance(0.4)
    bench.submit("b")
    assert names(link) == []
    bench.clock.advance(0.11)
    assert names(link) == [["a", "b"]]
    bench.finish(slot, link)
    bench.submit("c", "d", "e")
    assert names(link)[1] == ["c", "d", "e"]


def test_an_expired_request_never_reaches_a_replica_and_is_told_at_its_deadline() -> None:
    bench = Bench(batch_size=1, limit=100)
    slot, link = bench.replica()
    bench.submit("running")
    bench.submit("waiting", timeout=2)
    bench.clock.advance(2.01)
    assert isinstance(bench.collector.one("waiting"), DeadlineExceeded)
    bench.finish(slot, link)
    assert names(link) == [["running"]]


def test_a_running_request_is_told_at_its_deadline_and_its_late_answer_is_dropped() -> None:
    bench = Bench(limit=100)
    slot, link = bench.replica()
    bench.submit("a", timeout=2)
    bench.clock.advance(2.01)
    assert isinstance(bench.collector.one("a"), DeadlineExceeded)
    bench.finish(slot, link)
    assert len(bench.collector.results["a"]) == 1
    assert bench.batcher.stats.dropped == 1


def test_a_cancelled_request_never_reaches_a_replica() -> None:
    bench = Bench(batch_size=1)
    slot, link = bench.replica()
    bench.submit("running")
    ticket = bench.collector.ticket("gone")
    bench.batcher.submit(ticket)
    bench.clock.turn()
    ticket.cancel()
    assert bench.batcher.waiting == 0
    bench.finish(slot, link)
    assert names(link) == [["running"]]
    assert isinstance(bench.collector.one("gone"), Cancelled)


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    bench = Bench(batch_size=1, queue=2)
    bench.replica()
    bench.submit("running", "b", "c", "d")
    refused = bench.collector.one("d")
    assert isinstance(refused, Overloaded)
    assert refused.retry_after is not None
    assert "--queue-size" in refused.message
    assert refused.retry_after >= 1


def test_without_a_replica_requests_wait_for_the_grace_and_are_then_refused_at_once() -> None:
    bench = Bench()
    bench.submit("a")
    bench.clock.advance(GRACE * 0.9)
    assert bench.collector.results["a"] == []
    bench.clock.advance(GRACE * 0.2)
    assert isinstance(bench.collector.one("a"), NoReplica)
    bench.submit("b")
    assert isinstance(bench.collector.one("b"), NoReplica)


def test_what_was_in_a_dead_replica_is_answered_by_another_alone() -> None:
    bench = Bench(batch_size=4)
    slot, link = bench.replica()
    bench.submit("a", "b")
    bench.batcher.retire(slot)
    bench.batcher.release(slot, "killed")
    other, second = bench.replica()
    bench.submit("c")
    assert names(link) == [["a", "b"]]
    assert names(second) == [["a"]]
    bench.finish(other, second)
    bench.finish(other, second)
    bench.finish(other, second)
    assert names(second) == [["a"], ["b"], ["c"]]
    assert all(isinstance(bench.collector.one(name), Response) for name in "abc")


def test_a_request_that_ends_two_replicas_fails_with_the_cause_and_its_neighbours_do_not() -> None:
    bench = Bench(batch_size=4)
    slot, _ = bench.replica()
    bench.submit("poison", "innocent")
    for _ in range(ATTEMPTS):
        bench.batcher.retire(slot)
        bench.batcher.release(slot, "it was ended by SIGSEGV")
        slot, link = bench.replica()
    failed = bench.collector.one("poison")
    assert isinstance(failed, ReplicaDied)
    assert "SIGSEGV" in failed.message
    bench.finish(slot, link)
    assert isinstance(bench.collector.one("innocent"), Response)


def test_a_prediction_over_its_limit_has_its_replica_replaced() -> None:
    bench = Bench(limit=5)
    slot, _ = bench.replica()
    bench.submit("stuck")
    bench.clock.advance(4.9)
    assert bench.hung == []
    bench.clock.advance(0.2)
    assert bench.hung == [slot]


def test_the_limit_counts_from_when_the_replica_could_begin() -> None:
    bench = Bench(limit=5, batch_size=1)
    slot, link = bench.replica()
    bench.submit("a")
    bench.finish(slot, link, seconds=0.0001)
    bench.submit("b", "c")  # both are sent: the replica is quick
    bench.clock.advance(4)
    bench.batcher.answered(slot, link.sent[1][0], answer(link.sent[1][1]), 4)
    bench.clock.advance(4)
    assert bench.hung == []
    bench.clock.advance(1.1)
    assert bench.hung == [slot]


@pytest.mark.parametrize("fault", ["another batch", "too few"])
def test_an_answer_to_what_was_not_asked_is_not_taken(fault: str) -> None:
    bench = Bench()
    slot, link = bench.replica()
    bench.submit("a", "b")
    batch, requests = link.sent[0]
    results = answer(requests)
    if fault == "another batch":
        batch += 1
    else:
        results.pop()
    assert not bench.batcher.answered(slot, batch, results, 0.01)


def test_closing_fails_all_that_waits_and_runs() -> None:
    bench = Bench(batch_size=1)
    bench.replica()
    bench.submit("running", "waiting")
    bench.batcher.close(lambda: Draining("stopped"))
    assert isinstance(bench.collector.one("running"), Draining)
    assert isinstance(bench.collector.one("waiting"), Draining)


def test_a_ping_takes_its_turn_and_its_answer_is_remembered() -> None:
    bench = Bench()
    slot, link = bench.replica()
    told: list[bool] = []
    bench.batcher.ping(slot, lambda: told.append(slot.healthy))
    bench.submit("a")
    assert (link.pings, names(link)) == (1, [])
    bench.batcher.ponged(slot, healthy=False, reason="tired")
    bench.clock.turn()
    assert (told, names(link)) == ([False], [["a"]])


def test_counters_add_up() -> None:
    bench = Bench(batch_size=2)
    slot, link = bench.replica()
    bench.submit("a", "b")
    batch, requests = link.sent[0]
    bench.batcher.answered(slot, batch, [answer(requests)[0], BadInput("no")], 0.01)
    stats = bench.batcher.stats
    assert (stats.requests, stats.answered, stats.failed) == (2, 1, {"BadInput": 1})
    assert sum(stats.batch_sizes.counts) == 1
    assert sum(stats.queue_seconds.counts) == 2


@given(st.lists(st.floats(0.1, 30), min_size=1, max_size=50), st.integers(1, 7))
def test_batches_never_exceed_their_limit_and_keep_the_order_of_deadlines(timeouts: list[float], size: int) -> None:
    bench = Bench(batch_size=size, limit=1000)
    slot, link = bench.replica()
    bench.submit("first", timeout=1000)
    for i, timeout in enumerate(timeouts):
        bench.submit(str(i), timeout=timeout)
    while slot.flights:
        bench.finish(slot, link)
    batches = link.sent[1:]
    assert all(len(requests) <= size for _, requests in batches)
    deadlines = [request.deadline for _, requests in batches for request in requests]
    assert deadlines == sorted(deadlines)
    assert len(deadlines) == len(timeouts)


class ExactlyOnce(RuleBasedStateMachine):
    """Whatever happens in whatever order, every request leaves exactly once, and none is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(batch_size=3, queue=8, limit=5)
        self.replicas: list[tuple[Slot, FakeLink]] = []
        self.tickets: list[str] = []
        self.made = 0

    @rule(timeout=st.floats(0.01, 20), n=st.integers(1, 4))
    def submit(self, timeout: float, n: int) -> None:
        for _ in range(n):
            self.made += 1
            name = f"r{self.made}"
            self.tickets.append(name)
            self.bench.submit(name, timeout=timeout)

    @rule(timeout=st.floats(0.01, 20), when=st.sampled_from(["before", "after"]))
    def submit_and_cancel(self, timeout: float, when: str) -> None:
        self.made += 1
        name = f"r{self.made}"
        self.tickets.append(name)
        ticket = self.bench.collector.ticket(name, timeout)
        self.bench.batcher.submit(ticket)
        if when == "after":
            self.bench.clock.turn()
        ticket.cancel()
        self.bench.clock.turn()

    @rule()
    def start_replica(self) -> None:
        if len(self.replicas) < 3:
            self.replicas.append(self.bench.replica())

    @rule(index=st.integers(0, 2), seconds=st.sampled_from([0.0001, 0.1]))
    def answer(self, index: int, seconds: float) -> None:
        if index < len(self.replicas) and self.replicas[index][0].flights:
            self.bench.finish(*self.replicas[index], seconds=seconds)

    @rule(index=st.integers(0, 2))
    def kill(self, index: int) -> None:
        if index < len(self.replicas):
            slot, _ = self.replicas.pop(index)
            self.bench.batcher.retire(slot)
            self.bench.clock.turn()
            self.bench.batcher.release(slot, "killed")
            self.bench.clock.turn()

    @rule(seconds=st.floats(0.001, 3))
    def wait(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)

    @invariant()
    def nothing_leaves_twice(self) -> None:
        assert all(len(self.bench.collector.results[name]) <= 1 for name in self.tickets)

    @invariant()
    def the_count_of_those_that_wait_is_true(self) -> None:
        left = sum(not self.bench.collector.results[name] for name in self.tickets)
        assert left <= self.bench.batcher.waiting + self.bench.batcher.running

    def teardown(self) -> None:
        self.bench.clock.advance(30)  # longer than any deadline
        assert all(len(self.bench.collector.results[name]) == 1 for name in self.tickets)
        stats = self.bench.batcher.stats
        assert stats.requests == stats.answered + stats.cancelled + sum(stats.failed.values())


ExactlyOnce.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestExactlyOnce = ExactlyOnce.TestCase


def test_idle_costs_no_timer() -> None:
    bench = Bench()
    slot, link = bench.replica()
    bench.submit("a", timeout=5)
    bench.finish(slot, link)
    bench.clock.advance(math.ceil(GRACE) + 20)
    assert bench.clock.timers == 0


def test_who_would_wait_longer_than_there_is_time_is_refused_when_it_comes() -> None:
    class Known(FixedBatch):
        """A policy that knows what batches take: a second, for four requests."""

        def wait(self, ahead: int) -> float:
            return (ahead // 4 + 1) * 1.0

        def least(self, size: int) -> float:
            return 1.0

    bench = Bench()
    bench.batcher.policy = Known(4)
    slot, link = bench.replica()
    bench.submit(*(f"first{i}" for i in range(4)), timeout=2.5)
    bench.submit(*(f"waiting{i}" for i in range(8)), timeout=2.5)
    bench.submit("too late", *(f"more{i}" for i in range(8)), timeout=2.5)
    assert not bench.collector.results["too late"]  # nobody has come too late yet
    bench.clock.advance(1.9)
    bench.finish(slot, link, 1.9)  # now some have
    assert isinstance(bench.collector.one("waiting0"), Overloaded)
    bench.submit(*(f"running{i}" for i in range(8)), timeout=2.6)
    bench.submit("late", timeout=2.6)
    assert isinstance(bench.collector.one("late"), Overloaded)
    bench.submit("patient", timeout=9.5)
    bench.submit("urgent", timeout=2.0)  # it goes before some of those that wait: how many is not known
    assert not bench.collector.results["patient"]
    assert not bench.collector.results["urgent"]
