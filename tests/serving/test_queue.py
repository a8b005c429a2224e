from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forecastle.serving.queue import Queue
from serving.fakes import Collector, FakeClock


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans())))
def test_what_comes_out_is_what_waits_by_deadline_then_arrival(entries: list[tuple[float, bool]]) -> None:
    queue, collector = Queue(1000), Collector(FakeClock())
    tickets = []
    for i, (timeout, _) in enumerate(entries):
        ticket = collector.ticket(str(i), timeout)
        tickets.append(ticket)
        queue.push(ticket)
    for ticket, (_, gone) in zip(tickets, entries, strict=True):
        if gone:
            ticket.cancel()
            queue.forget(ticket)
    stay = [ticket for ticket, (_, gone) in zip(tickets, entries, strict=True) if not gone]
    assert len(queue) == len(stay)
    out = []
    while (head := queue.head()) is not None:
        assert queue.pop() is head
        out.append(head)
    assert out == sorted(stay, key=lambda ticket: ticket.request.deadline)
    assert len(queue) == 0


def test_a_mass_of_disconnects_does_not_hold_its_bodies() -> None:
    queue, collector = Queue(10_000), Collector(FakeClock())
    tickets = [collector.ticket(str(i)) for i in range(1000)]
    for ticket in tickets:
        queue.push(ticket)
    for ticket in tickets[1:]:
        queue.forget(ticket)
    assert len(queue) == 1
    assert len(queue._heap) < 200


def test_a_ticket_that_was_given_more_time_keeps_its_place_and_is_late_by_its_new_deadline() -> None:
    queue, collector = Queue(10), Collector(FakeClock())
    first, second = collector.ticket("first", 1.0), collector.ticket("second", 2.0)
    queue.push(first)
    queue.push(second)
    first.request.deadline += 5.0
    assert queue.head() is first
    assert queue.late(100.5) is None
    assert queue.late(102.5) is second
    assert queue.late(102.5) is None
    assert len(queue) == 1
    assert queue.late(106.0) is first
    assert queue.late(200.0) is None


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30), st.integers(0, 45))
def test_exactly_what_is_late_is_taken_out(entries: list[tuple[int, int]], now: int) -> None:
    queue, collector = Queue(1000), Collector(FakeClock())
    tickets = [collector.ticket(str(i), timeout) for i, (timeout, _) in enumerate(entries)]
    for ticket, (_, more) in zip(tickets, entries, strict=True):
        queue.push(ticket)
        ticket.request.deadline += more
    late = []
    while (ticket_ := queue.late(100.0 + now)) is not None:
        late.append(ticket_)
    assert {id(ticket) for ticket in late} == {id(t) for t in tickets if t.request.deadline <= 100.0 + now}
    assert len(queue) == len(tickets) - len(late)
