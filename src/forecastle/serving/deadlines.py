"""Deadlines of many things that mostly are over before: one timer for all, and little work for each."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Protocol

from forecastle.serving.clock import Alarm, Clock

_SLACK = 1024
"""So many that are over may be held, besides as many as are not."""


class Dated(Protocol):
    """Something that ends by its deadline."""

    @property
    def deadline(self) -> float:
        """When it ends at the latest, in monotonic seconds."""

    @property
    def over(self) -> bool:
        """Whether it has ended."""

    def expire(self) -> None:
        """End it: its deadline has passed."""


class Deadlines:
    """Expires what is not over by its deadline; what is over is let go of then, or when there is much of it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alarm = Alarm(clock, self._wake)
        self._heap: list[tuple[float, int, Dated]] = []
        self._added = 0
        self._live = 0

    def __len__(self) -> int:
        """How many are not over."""
        return self._live

    def watch(self, item: Dated) -> None:
        """See that it is over by its deadline; whoever ends it calls ``ended``."""
        self._added += 1
        self._live += 1
        heappush(self._heap, (item.deadline, self._added, item))
        self._alarm.set(item.deadline)

    def ended(self) -> None:
        """Note that one of those watched is over."""
        self._live -= 1
        if len(self._heap) > 2 * self._live + _SLACK:
            self._heap = [entry for entry in self._heap if not entry[2].over]
            heapify(self._heap)

    def _wake(self) -> None:
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            item = heappop(self._heap)[2]
            if not item.over:
                item.expire()
        if self._heap:
            self._alarm.set(self._heap[0][0])
