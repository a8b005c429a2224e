"""Answers that are known: those kept, and those under way, which everyone who asks the same waits for."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from forecastle.messages import Request, Response
from forecastle.serving.clock import Clock
from forecastle.serving.ticket import Done, Result, Ticket

_ENTRY = 640
"""Bytes that an answer takes besides its own and its question's content (64-bit CPython, with one part)."""

_PART = 170
"""Bytes that each part of a question takes besides its content."""

Submit = Callable[[Request, Done], Ticket]
Key = tuple[object, ...]


class Cache:
    """Holds at most ``limit`` bytes, overhead included; what was used least lately goes first.

    Two requests ask the same where model, generation of its version, Accept, and every part's name, content type and
    bytes are equal; the bytes themselves are compared. ``seconds`` is how long an answer is kept, 0 for as long as
    there is room. Errors and answers in pieces are never kept; a request with headers for hooks goes past the cache.
    """

    def __init__(self, limit: int, seconds: float, clock: Clock) -> None:
        self.limit = limit
        self.size = self.hits = self.misses = self.joined = self.evicted = 0
        self._seconds = seconds
        self._clock = clock
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._flights: dict[Key, _Flight] = {}

    def __len__(self) -> int:
        """How many answers are kept."""
        return len(self._entries)

    def ask(self, request: Request, generation: int, submit: Submit, done: Done) -> _Seat | Ticket | None:
        """Answer from what is kept, which returns None, or wait for what is under way, or submit the request.

        ``done`` is called once, perhaps before this returns. A prediction that several wait for has until the latest
        of their deadlines, and is given up when the last of them is cancelled.
        """
        if request.headers:
            return submit(request, done)
        key: Key = (request.model, generation, request.accept)
        for part in request.parts:
            key += (part.name, part.content_type, part.data)
        entry = self._entries.get(key)
        if entry is not None:
            if entry.until > (self._clock.now() if self._seconds else 0.0):
                self.hits += 1
                self._entries.move_to_end(key)
                done(entry.response)
                return None
            self._forget(key)
        self.misses += 1
        flight = self._flights.get(key)
        if flight is not None:
            self.joined += 1
            flight.request.deadline = max(flight.request.deadline, request.deadline)
            return flight.join(done)
        flight = self._flights[key] = _Flight(request)
        seat = flight.join(done)
        flight.ticket = submit(request, partial(self._landed, key, flight))
        return seat

    def purge(self, model: str | None = None) -> int:
        """Forget every answer, or those of one model; what is under way is not kept. Returns how many there were."""
        keys = [key for key in self._entries if model is None or key[0] == model]
        for key in keys:
            self._forget(key)
        for key in [key for key in self._flights if model is None or key[0] == model]:
            del self._flights[key]
        return len(keys)

    def _landed(self, key: Key, flight: _Flight, result: Result) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
            if isinstance(result, Response) and result.rest is None and result.status == 200:
                self._keep(key, result)
        flight.land(result)

    def _keep(self, key: Key, response: Response) -> None:
        size = _size(key, response)
        if size > self.limit:
            return
        until = self._clock.now() + self._seconds if self._seconds else math.inf
        self._entries[key] = _Entry(response, size, until)
        self.size += size
        while self.size > self.limit:
            self.size -= self._entries.popitem(last=False)[1].size
            self.evicted += 1

    def _forget(self, key: Key) -> None:
        self.size -= self._entries.pop(key).size


class _Entry:
    __slots__ = ("response", "size", "until")

    def __init__(self, response: Response, size: int, until: float) -> None:
        self.response = response
        self.size = size
        self.until = until


class _Flight:
    """One prediction, and those who wait for it."""

    __slots__ = ("_seats", "request", "ticket")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.ticket: Ticket | None = None
        self._seats: list[_Seat] = []

    def join(self, done: Done) -> _Seat:
        seat = _Seat(self, done)
        self._seats.append(seat)
        return seat

    def leave(self, seat: _Seat) -> None:
        if seat in self._seats:
            self._seats.remove(seat)
            if not self._seats and self.ticket is not None:
                self.ticket.cancel()

    def land(self, result: Result) -> None:
        seats, self._seats = self._seats, []
        for seat in seats:
            seat.done(result)


class _Seat:
    """One who waits; leaves without effect once the prediction is known."""

    __slots__ = ("done", "flight")

    def __init__(self, flight: _Flight, done: Done) -> None:
        self.flight = flight
        self.done = done

    def cancel(self) -> None:
        self.flight.leave(self)


def _size(key: Key, response: Response) -> int:
    size = _ENTRY - _PART + _PART * (len(key) - 3) // 3
    size += sum(len(item) for item in key if isinstance(item, str | bytes))
    size += len(response.body) + len(response.content_type)
    return size + sum(_PART + len(name) + len(value) for name, value in response.headers.items())
