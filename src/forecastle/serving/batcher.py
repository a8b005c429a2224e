"""The batcher of one model: its queue, its replicas, and the batches that go from the one to the others.

Replicas pull: a replica with room takes what waits, at once. One alarm serves every instant that matters (the next
deadline, of those that wait and of those that run; a prediction over its limit; a batch that has waited to fill;
requests that have waited for a replica while there is none).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from forecastle.errors import DeadlineExceeded, NoReplica, Overloaded, ReplicaDied, RequestError
from forecastle.messages import Request, Response
from forecastle.serving.clock import Alarm, Clock
from forecastle.serving.policy import BatchPolicy
from forecastle.serving.queue import Queue
from forecastle.serving.slot import Flight, Slot
from forecastle.serving.stats import ModelStats
from forecastle.serving.stream import Stream
from forecastle.serving.ticket import Result, Ticket

GRACE = 1.0
"""Seconds that requests wait for a replica while there is none, about what a restart takes; then they are refused."""

CERTAIN = 0.92
"""What share of the wait that is foretold must exceed a request's time for it to be refused as it comes.

Whoever is not refused then may still be when a replica is free: later, and never without need.
"""

ATTEMPTS = 2
"""How many replicas may die with a request in them before the request fails with them."""


Record = Callable[[int, str, float, float], None]
"""Takes the size of a batch that is done, why it had that size, and what it was foretold to take, and took, in seconds.

What it took is from when the replica could begin to when the last answer had come.
"""


class Batcher:
    """Takes tickets, and sees that each leaves exactly once: answered, failed, or dropped by its client.

    ``limit`` is how long one batch may run, in seconds, before its replica is replaced. ``record`` is told each batch.
    """

    def __init__(
        self,
        model: str,
        *,
        policy: BatchPolicy,
        queue: Queue,
        clock: Clock,
        limit: float,
        record: Record | None = None,
    ) -> None:
        self.stats = ModelStats()
        self.slots: list[Slot] = []
        self.policy = policy
        self._model = model
        self._queue = queue
        self._clock = clock
        self._limit = limit
        self._record = record
        self._batches = 0
        self._pumping = False
        self._crowded = False  # whether somebody came too late for the last batch, or was refused since the one before
        self._refused = False
        self._closed: Callable[[], RequestError] | None = None
        self._alarm = Alarm(clock, self._wake)
        self._without_replica_since = clock.now()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """How many requests are with a replica."""
        return sum(len(flight.tickets) for slot in self.slots for flight in slot.flights)

    def submit(self, ticket: Ticket) -> None:
        """Queue a ticket, or refuse it at once where the queue is full or there is no replica to wait for."""
        ticket.owner = self
        self.stats.requests += 1
        queue = self._queue
        if self._closed is not None:
            self._end(ticket, self._closed())
        elif len(queue) >= queue.limit:
            self._end(ticket, self._overloaded())
        elif self._is_too_late(ticket):
            self._end(ticket, self._behind(ticket, ticket.accepted))
        elif not self.slots and ticket.accepted >= self._without_replica_since + GRACE:
            self._end(ticket, self._no_replica())
        else:
            queue.push(ticket)
            self._alarm.set(ticket.request.deadline)
            self._pump_soon()

    def cancelled(self, ticket: Ticket) -> None:
        """Count a request whose client has gone; if it waits, it will not run."""
        self.stats.cancelled += 1
        if ticket.waiting:
            self._queue.forget(ticket)

    def attach(self, slot: Slot) -> None:
        """Begin to use a replica that is ready."""
        self.slots.append(slot)
        self._pump_soon()

    def retire(self, slot: Slot) -> None:
        """Send a replica nothing more; what is in it stays there until ``release``."""
        if slot in self.slots:
            self.slots.remove(slot)
            if not self.slots:
                self._without_replica_since = self._clock.now()
                self._pump_soon()

    def abandon(self) -> None:
        """Refuse who waits and who comes, for there is to be no replica; one that is attached changes that."""
        if not self.slots:
            self._without_replica_since = -math.inf
            self._wake()

    def release(self, slot: Slot, reason: str) -> None:
        """Take back what is in a retired replica: it goes to another one, once and alone, or fails with the reason."""
        for ticket in [ticket for flight in slot.flights for ticket in flight.tickets if not ticket.settled]:
            ticket.attempts += 1
            if self._closed is not None:
                self._end(ticket, self._closed())
            elif ticket.attempts >= ATTEMPTS:
                self._end(ticket, ReplicaDied(f"{ATTEMPTS} replicas of {self._model!r} ended with it: {reason}"))
            else:
                self._queue.push(ticket)
                self._alarm.set(ticket.request.deadline)
        for stream in [stream for flight in slot.flights for stream in flight.streams.values() if not stream.over]:
            self.stats.broken += 1
            stream.end(ReplicaDied(f"the replica of {self._model!r} ended in the midst of the answer: {reason}"))
        slot.flights.clear()
        slot.tell(healthy=False, reason=reason)
        self._pump_soon()

    def close(self, error: Callable[[], RequestError]) -> None:
        """Fail everything that waits or runs, or comes from now on."""
        self._closed = error
        self._alarm.stop()
        while (ticket := self._queue.pop()) is not None:
            self._end(ticket, error())
        for slot in self.slots:
            for flight in slot.flights:
                for ticket in flight.tickets:
                    self._end(ticket, error())
                for stream in flight.streams.values():
                    stream.stop(error())

    def ping(self, slot: Slot, answered: Callable[[], None]) -> None:
        """Ask an idle replica's ``ping_fn``."""
        now = self._clock.now()
        slot.ask(now, answered)
        self._alarm.set(now + self._limit)

    def ponged(self, slot: Slot, healthy: bool, reason: str) -> None:
        """Take what ``ping_fn`` said."""
        slot.tell(healthy, reason)
        self._next(slot)

    def answered(self, slot: Slot, batch: int, results: list[Result], seconds: float) -> bool:
        """Give each request of the replica's oldest batch its result; false where it answers what it was not asked."""
        flight = slot.flights[0] if slot.flights else None
        if flight is None or flight.id != batch or len(results) != len(flight.tickets) or flight.streams:
            return False
        stats, size, sent = self.stats, len(results), flight.sent
        stats.batch_sizes.observe(size)
        stats.predict_seconds.observe(seconds)
        waited = stats.queue_seconds.observe
        for ticket, result in zip(flight.tickets, results, strict=True):
            waited(sent - ticket.accepted)
            if isinstance(result, Response) and isinstance(result.rest, Stream):
                self._begin(flight, ticket, result.rest)
            self._end(ticket, result)
        if not flight.streams:
            self._done(slot, flight, seconds)
        return True

    def piece(self, slot: Slot, batch: int, index: int, data: bytes) -> bool:
        """Pass on a piece of an answer; false where there is no such answer."""
        flight = slot.flights[0] if slot.flights else None
        if flight is None or flight.id != batch or index not in flight.streams:
            return False
        flight.streams[index].push(data)
        flight.started = self._clock.now()
        return True

    def ended(self, slot: Slot, batch: int, index: int, error: RequestError | None) -> bool:
        """Close an answer that came in pieces; false where there is no such answer."""
        flight = slot.flights[0] if slot.flights else None
        stream = flight.streams.pop(index, None) if flight is not None and flight.id == batch else None
        if flight is None or stream is None:
            return False
        if error is not None and not stream.over:
            self.stats.broken += 1
        stream.end(error)
        if not flight.streams:
            self._done(slot, flight, self._clock.now() - flight.sent)
        return True

    def _begin(self, flight: Flight, ticket: Ticket, stream: Stream) -> None:
        """Keep an answer that goes on in pieces; one that nobody waits for any more is not made."""
        stream.deadline = ticket.request.deadline
        flight.streams[flight.tickets.index(ticket)] = stream
        flight.started = self._clock.now()
        self._alarm.set(stream.deadline)
        if ticket.settled:
            stream.cancel()

    def _done(self, slot: Slot, flight: Flight, seconds: float) -> None:
        slot.flights.popleft()
        size, elapsed = len(flight.tickets), max(seconds, self._clock.now() - flight.started)
        if self._record is not None:
            self._record(size, *flight.plan, elapsed)
        self.policy.observe(size, seconds, elapsed)
        self._next(slot)

    def _next(self, slot: Slot) -> None:
        """Start the clock of the batch that a replica turns to next, and give it another one."""
        if slot.flights:
            slot.flights[0].started = now = self._clock.now()
            self._alarm.set(now + self._limit)
        self._pump_soon()

    def _end(self, ticket: Ticket, result: Result) -> None:
        if not ticket.settle(result):
            self.stats.dropped += 1
        elif isinstance(result, RequestError):
            self.stats.fail(result.type)
        else:
            self.stats.answered += 1

    def _pump_soon(self) -> None:
        """Form batches once the requests of this turn of the loop are all there."""
        if not self._pumping and self._queue:
            self._pumping = True
            self._clock.call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        now, policy = self._clock.now(), self.policy
        if not self.slots:
            self._alarm.set(self._without_replica_since + GRACE)
            return
        depth = policy.depth()
        while (head := self._queue.head()) is not None:
            slot = min(self.slots, key=_load)
            if len(slot.flights) >= depth:
                return
            idle = sum(not slot.flights for slot in self.slots)
            share = math.ceil(len(self._queue) / max(1, idle))
            if share < policy.enough and now < head.accepted + policy.delay:
                self._alarm.set(head.accepted + policy.delay)
                return
            begins = now if not slot.flights else now + policy.least(len(slot.flights[0].tickets))
            deadline = head.request.deadline
            size = policy.size(share, deadline - begins, deadline - head.accepted)
            self._send(slot, size, now, begins + policy.least(size))

    def _send(self, slot: Slot, size: int, now: float, ends: float) -> None:
        """Send a batch that ends at ``ends`` at best; who cannot wait so long gives way to those behind."""
        tickets: list[Ticket] = []
        requests: list[Request] = []
        queue = self._queue
        self._crowded, self._refused = self._refused, False
        while len(tickets) < size and (head := queue.head()) is not None:
            if head.attempts and tickets:
                break  # what a replica died with runs alone, so that it takes no other request with it
            queue.pop()
            if head.request.deadline <= now:
                self._end(head, self._late(head))
                continue
            if head.request.deadline <= ends and queue:
                self._end(head, self._behind(head, now))
                self._crowded = True
                continue
            tickets.append(head)
            requests.append(head.request)
            if head.attempts:
                break
        if tickets:
            self._batches += 1
            flight = Flight(self._batches, tickets, now)
            if self._record is not None:
                flight.plan = (self.policy.reason, self.policy.foretold(len(tickets)))
            slot.flights.append(flight)
            slot.link.send(self._batches, requests, now)
            self._alarm.set(min(tickets[0].request.deadline, now + self._limit))

    def _wake(self) -> None:
        now = self._clock.now()
        while (late := self._queue.late(now)) is not None:
            self._end(late, self._late(late))
        if not self.slots and now >= self._without_replica_since + GRACE:
            while (waiting := self._queue.pop()) is not None:
                self._end(waiting, self._no_replica())
        if (head := self._queue.head()) is not None:
            self._alarm.set(head.request.deadline)
        for slot in list(self.slots):
            self._watch(slot, now)
        self._pump_soon()

    def _watch(self, slot: Slot, now: float) -> None:
        """Fail the running requests whose deadline has passed, and have a replica replaced that is over its limit."""
        for flight in slot.flights:
            for ticket in flight.tickets:
                if ticket.settled:
                    continue
                if ticket.request.deadline <= now:
                    self._end(ticket, self._late(ticket))
                else:
                    self._alarm.set(ticket.request.deadline)
            for index, stream in flight.streams.items():
                if stream.over:
                    continue
                if stream.deadline <= now:
                    self.stats.broken += 1
                    stream.stop(self._late(flight.tickets[index]))
                else:
                    self._alarm.set(stream.deadline)
        if slot.flights:
            over_at = slot.flights[0].started + self._limit
            if over_at <= now:
                slot.hung()
            else:
                self._alarm.set(over_at)

    def _is_too_late(self, ticket: Ticket) -> bool:
        """Whether those that go before a new ticket leave it no time.

        That is asked only while some come too late, and of the last one only: how many go before others is not known.
        """
        queue, deadline = self._queue, ticket.request.deadline
        ahead = len(queue)
        if not self._crowded or not ahead or not self.slots or deadline < queue.latest:
            return False
        wait, flights = self.policy.wait(ahead // len(self.slots)), min(self.slots, key=_load).flights
        if wait and flights:
            wait += max(0.0, flights[0].started + self.policy.foretold(len(flights[0].tickets)) - ticket.accepted)
        late = CERTAIN * wait > deadline - ticket.accepted
        self._refused = self._refused or late
        return late

    def _late(self, ticket: Ticket) -> RequestError:
        seconds = max(0.0, ticket.request.deadline - ticket.accepted)
        return DeadlineExceeded(
            f"no whole answer from {self._model!r} within {seconds:.3g} s, the limit set by --timeout or by the client"
        )

    def _behind(self, ticket: Ticket, now: float) -> RequestError:
        left = ticket.request.deadline - now
        wait = len(self._queue) * self.policy.item_seconds / max(1, len(self.slots))
        text = f"too many requests wait for {self._model!r}: it would not answer within the {left:.3g} s that are left"
        return Overloaded(text, retry_after=max(1.0, wait))

    def _no_replica(self) -> RequestError:
        text = f"no replica of {self._model!r} is ready; it is starting or restarting"
        return NoReplica(text, retry_after=1.0)

    def _overloaded(self) -> RequestError:
        limit = self._queue.limit
        wait = limit * self.policy.item_seconds / max(1, len(self.slots))
        text = f"{limit} requests wait for {self._model!r} already, the limit set by --queue-size"
        return Overloaded(text, retry_after=max(1.0, wait))


def _load(slot: Slot) -> int:
    return len(slot.flights)
