"""What is counted of one model: plain numbers, rendered elsewhere when somebody asks."""

from __future__ import annotations

from bisect import bisect_left

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Histogram:
    """Counts by bucket: ``counts[i]`` is how many were at most ``bounds[i]`` (and above the bound before)."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class ModelStats:
    """Counters of one model.

    Every request adds one to ``requests`` and, later, one to exactly one of ``answered``, ``cancelled`` and ``failed``.
    ``dropped`` are answers that nobody waited for any more, ``broken`` those that ended before they were whole.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.answered = 0
        self.cancelled = 0
        self.failed: dict[str, int] = {}
        self.dropped = 0
        self.broken = 0
        self.queue_seconds = Histogram(SECONDS)
        self.predict_seconds = Histogram(SECONDS)
        self.batch_sizes = Histogram(SIZES)

    def fail(self, error_type: str) -> None:
        """Count a request that ended in an error of this type."""
        self.failed[error_type] = self.failed.get(error_type, 0) + 1
