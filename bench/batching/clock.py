"""Time that passes as fast as its events can be worked off."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush


class Timer:
    """A call that is due later."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Take the call back."""
        self.call = None


class SimulatedClock:
    """A clock for the serving core that jumps from event to event."""

    def __init__(self) -> None:
        self.time = 0.0
        self._soon: deque[Callable[[], None]] = deque()
        self._later: list[tuple[float, int, Timer]] = []
        self._calls = 0

    def now(self) -> float:
        """Return the simulated seconds."""
        return self.time

    def call_soon(self, call: Callable[[], None]) -> None:
        """Make the call before time passes."""
        self._soon.append(call)

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Make the call at ``when``."""
        timer = Timer(call)
        self._calls += 1
        heappush(self._later, (when, self._calls, timer))
        return timer

    def run(self, until: float) -> None:
        """Let time pass up to ``until``."""
        soon, later = self._soon, self._later
        while True:
            while soon:
                soon.popleft()()
            if not later or later[0][0] > until:
                break
            when, _, timer = heappop(later)
            if timer.call is not None:
                self.time = max(self.time, when)
                timer.call()
        self.time = until
