"""Time, as the serving core sees it: monotonic seconds and timers, so that a test can move it by hand."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Protocol

_TICK = 0.001


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Take the call back, if it was not made yet."""


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Return monotonic seconds."""

    def call_soon(self, call: Callable[[], None]) -> object:
        """Make the call once whatever arrives together has arrived."""

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Make the call at ``when``, in monotonic seconds."""


class LoopClock:
    """The clock of a running event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now = time.monotonic
        self.call_soon = loop.call_soon

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Make the call at ``when``, up to a tick of the loop's own clock (a millisecond) late, and never early."""
        return self._loop.call_later(max(0.0, when - self.now()) + _TICK, call)


class Alarm:
    """One timer for many instants: it rings at the earliest that was set, and then has none."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._when = math.inf
        self._timer: Timer | None = None

    def set(self, when: float) -> None:
        """See that it rings no later than ``when``; costs a comparison where it would anyway."""
        if when < self._when:
            if self._timer is not None:
                self._timer.cancel()
            self._when = when
            self._timer = self._clock.call_at(when, self._due)

    def stop(self) -> None:
        """Never ring again."""
        if self._timer is not None:
            self._timer.cancel()
        self._when = -math.inf

    def _due(self) -> None:
        self._timer = None
        self._when = math.inf
        self._ring()
