"""How many requests make the next batch: one small interface, so that a cleverer policy can take its place."""

from __future__ import annotations

from typing import Protocol

APART_SECONDS = 0.002
"""How long a batch may keep a replica busy whose model predicts one request at a time.

Such a batch saves messages, not predictions, and a request in it cannot move to a replica that becomes free. At 2 ms
the messages (about 50 microseconds each way) are no longer what costs.
"""

PIPELINE_SECONDS = 0.002
"""Batches shorter than this are sent while the one before still runs, so that the replica never waits for the next."""


ALL, LIMIT, APART = "all that waits", "limit", "one at a time"
"""Why a batch has its size: nothing else waits; it holds the most it may; a model that predicts one at a time."""


class BatchPolicy(Protocol):
    """Decides the size of a batch, and learns what batches cost."""

    limit: int
    """The most requests a batch ever holds."""
    enough: int
    """How many requests are not worth waiting for more; at most ``limit``."""
    delay: float
    """Seconds that a free replica may wait for a batch to fill."""
    reason: str
    """Why the last size was what it was: all that waited, or what limited it."""

    def size(self, share: int, budget: float, whole: float) -> int:
        """Return how many requests the next batch may hold, where ``share`` wait for this replica; at least one.

        ``budget`` is the least that one of them has left, in seconds, ``whole`` what it had when it was accepted.
        """

    def least(self, size: int) -> float:
        """Return the seconds below which a batch of ``size`` hardly ever ends; 0 where that is not known."""

    def foretold(self, size: int) -> float:
        """Return the seconds that a batch of ``size`` takes on average; 0 where that is not known."""

    def wait(self, ahead: int) -> float:
        """Return the seconds at least until a request is answered that so many go before; 0 where that is not known."""

    def depth(self) -> int:
        """Return how many batches a replica may hold, the running one included."""

    def observe(self, size: int, seconds: float, elapsed: float) -> None:
        """Learn that a batch of ``size`` took the replica ``seconds``, and ``elapsed`` with its way there and back."""

    @property
    def item_seconds(self) -> float:
        """What one request costs a replica, as far as known."""


class FixedBatch:
    """At most ``limit`` requests, predicted together; what waits goes at once, unless ``delay`` is set.

    Where the model predicts one at a time (``together`` false), a batch is held to what takes ``APART_SECONDS``.
    """

    def __init__(self, limit: int, delay: float = 0.0, *, together: bool = True) -> None:
        self.limit = limit
        self.enough = limit
        self.delay = delay
        self.together = together
        self.reason = ""
        self._batch_seconds: float | None = None
        self._item_seconds: float | None = None

    def size(self, share: int, budget: float, whole: float) -> int:  # noqa: ARG002
        """Return the share, within the limit and, for a model that predicts one at a time, within its time."""
        most = self.limit
        if not self.together:
            most = 1 if self._item_seconds is None else min(most, int(APART_SECONDS / self._item_seconds))
        size = max(1, min(share, most))
        self.reason = ALL if size == share else LIMIT if size == self.limit else APART
        return size

    def least(self, size: int) -> float:  # noqa: ARG002
        """Return 0: a fixed size sends what waits, however little time it has left."""
        return 0.0

    def foretold(self, size: int) -> float:
        """Return what as many items have cost lately."""
        return size * self.item_seconds

    def wait(self, ahead: int) -> float:  # noqa: ARG002
        """Return 0: what larger batches would take is not known."""
        return 0.0

    def depth(self) -> int:
        """Return 2 for a model quick enough that its replica would otherwise wait for the next batch."""
        return 2 if self._batch_seconds is not None and self._batch_seconds < PIPELINE_SECONDS else 1

    def observe(self, size: int, seconds: float, elapsed: float) -> None:  # noqa: ARG002
        """Keep moving averages: of a batch's seconds and of an item's."""
        self._batch_seconds = moved(self._batch_seconds, seconds)
        self._item_seconds = moved(self._item_seconds, max(seconds / size, 1e-7))

    @property
    def item_seconds(self) -> float:
        """What one request costs a replica, as far as known."""
        return self._item_seconds or 0.0


def moved(average: float | None, value: float) -> float:
    """Return a moving average with one more value in it."""
    return value if average is None else average + 0.2 * (value - average)
