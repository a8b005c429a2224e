"""A ready replica, as the batcher sees it: its link, and what it holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from forecastle.serving.link import ReplicaLink
from forecastle.serving.stream import Stream
from forecastle.serving.ticket import Ticket


class Flight:
    """What a replica holds: a batch of tickets, or a ping (no ticket).

    ``sent`` is when it was sent, ``started`` when the replica could begin with it or last gave a sign of it, in
    monotonic seconds. ``plan`` is why it has its size and what it was foretold to take, where that is recorded.
    ``streams`` are the answers that are still on their way, by their place in the batch.
    """

    __slots__ = ("id", "plan", "sent", "started", "streams", "tickets")

    def __init__(self, id_: int, tickets: list[Ticket], now: float) -> None:
        self.id = id_
        self.tickets = tickets
        self.sent = now
        self.started = now
        self.plan = ("", 0.0)
        self.streams: dict[int, Stream] = {}


class Slot:
    """A replica that is ready. ``hung`` is called when a prediction is over its limit: it is to be replaced."""

    def __init__(self, link: ReplicaLink, hung: Callable[[], None]) -> None:
        self.link = link
        self.hung = hung
        self.flights: deque[Flight] = deque()
        self.healthy = True
        self.reason = ""
        self._asked: list[Callable[[], None]] = []

    def ask(self, now: float, answered: Callable[[], None]) -> None:
        """Send a ping; ``answered`` is called when ``healthy`` holds what it said."""
        self.flights.append(Flight(0, [], now))
        self._asked.append(answered)
        self.link.ping()

    def tell(self, healthy: bool, reason: str) -> None:
        """Note what ``ping_fn`` said, and tell those who asked."""
        self.healthy, self.reason = healthy, reason
        if self.flights and not self.flights[0].tickets:
            self.flights.popleft()
        asked, self._asked = self._asked, []
        for answered in asked:
            answered()
