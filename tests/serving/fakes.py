"""A clock that a test moves by hand, and a link that remembers what was sent."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from forecastle.messages import Part, Request, Response
from forecastle.serving.link import ReplicaLink
from forecastle.serving.ticket import Result, Ticket


class FakeTimer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    def __init__(self) -> None:
        self.time = 100.0
        self._soon: list[Callable[[], None]] = []
        self._later: list[tuple[float, int, Callable[[], None], FakeTimer]] = []
        self._ids = count()

    def now(self) -> float:
        return self.time

    def call_soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def call_at(self, when: float, call: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer()
        heapq.heappush(self._later, (when, next(self._ids), call, timer))
        return timer

    def turn(self) -> None:
        """Let everything happen that is due now."""
        for _ in range(10_000):
            if self._soon:
                self._soon.pop(0)()
            elif self._later and self._later[0][0] <= self.time:
                _, _, call, timer = heapq.heappop(self._later)
                if not timer.cancelled:
                    call()
            else:
                return
        raise AssertionError("the clock never comes to rest")

    def advance(self, seconds: float) -> None:
        """Let time pass, stopping at every timer on the way."""
        until = self.time + seconds
        self.turn()
        while self._later and self._later[0][0] <= until:
            self.time = max(self.time, self._later[0][0])
            self.turn()
        self.time = until
        self.turn()

    @property
    def timers(self) -> int:
        return sum(not timer.cancelled for *_, timer in self._later)


class FakeLink(ReplicaLink):
    """Stands where a replica's connection would: the batcher's own behaviour is under test, not the socket's."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, list[Request]]] = []
        self.pings = 0

    def send(self, batch: int, requests: Sequence[Request], now: float) -> None:
        self.sent.append((batch, list(requests)))

    def ping(self) -> None:
        self.pings += 1

    def close(self) -> None:
        pass


class Collector:
    """Makes tickets and keeps what each was settled with."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.results: dict[str, list[Result]] = {}

    def ticket(self, name: str, timeout: float = 60.0, model: str = "m") -> Ticket:
        self.results[name] = []
        request = Request(name, model, [Part("", "", name.encode())], "*/*", self.clock.time + timeout)
        return Ticket(request, self.results[name].append, self.clock.time)

    def one(self, name: str) -> Result:
        (result,) = self.results[name]
        return result


def answer(requests: Sequence[Request]) -> list[Result]:
    return [Response(b"answer to " + request.parts[0].data, "text/plain") for request in requests]
