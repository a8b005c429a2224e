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
