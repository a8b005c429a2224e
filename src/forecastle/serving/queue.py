"""The queue of one model: bounded, earliest deadline first."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

from forecastle.serving.ticket import Ticket


class Queue:
    """Tickets that wait, in the order of their deadlines, and of arrival where those are equal.

    A ticket that is settled while it waits (its client has gone) stays in the heap until it is met there; ``forget``
    takes it out of the count at once. ``latest`` is the latest deadline of those that wait, or of some that did.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.latest = -math.inf
        self._heap: list[tuple[float, int, Ticket]] = []
        self._arrivals = 0
        self._gone = 0

    def __len__(self) -> int:
        """How many tickets wait."""
        return len(self._heap) - self._gone

    def push(self, ticket: Ticket) -> None:
        """Add a ticket. Whether the queue is full is for the caller to ask: what a dead replica gives back fits."""
        self._arrivals += 1
        deadline = ticket.request.deadline
        if deadline > self.latest or not self._heap:
            self.latest = deadline
        ticket.waiting = True
        heappush(self._heap, (deadline, self._arrivals, ticket))

    def forget(self, ticket: Ticket) -> None:
        """Count a settled ticket as gone."""
        ticket.waiting = False
        self._gone += 1
        if self._gone > 64 and self._gone * 2 > len(self._heap):  # a mass of disconnects must not hold its bodies
            self._heap = [entry for entry in self._heap if entry[2].waiting]
            heapify(self._heap)
            self._gone = 0

    def head(self) -> Ticket | None:
        """Return the ticket with the earliest deadline, without taking it."""
        heap = self._heap
        while heap:
            ticket = heap[0][2]
            if ticket.waiting:
                return ticket
            heappop(heap)
            self._gone -= 1
        return None

    def late(self, now: float) -> Ticket | None:
        """Take a ticket whose deadline has passed; one that was given more time since it came waits on by its new one.

        Until then it keeps its place: who asked first is served as if nobody had asked after.
        """
        while (ticket := self.head()) is not None and self._heap[0][0] <= now:
            heappop(self._heap)
            deadline = ticket.request.deadline
            if deadline <= now:
                ticket.waiting = False
                return ticket
            self._arrivals += 1
            heappush(self._heap, (deadline, self._arrivals, ticket))
        return None

    def pop(self) -> Ticket | None:
        """Take the ticket with the earliest deadline."""
        ticket = self.head()
        if ticket is not None:
            heappop(self._heap)
            ticket.waiting = False
        return ticket
