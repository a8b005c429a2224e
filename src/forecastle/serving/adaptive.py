"""The adaptive policy: as many requests to a batch as pay, and as are answered in time.

What pays: of two sizes that answer about as many requests a second the smaller, for the larger one costs latency and
memory and gains nothing. What is in time: a batch whose tail fits the least that one of its requests has left; and, as
a request that comes just after a batch has gone waits for that one and then runs itself, a batch that takes half of
what a request has in all (the SLO).

Small batches for requests that have waited long save them, and cost those behind them, of whom there are more as
batches get smaller. So where more than a full batch waits, the size is that of a full batch, and the batcher refuses
those that it comes too late for.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

from forecastle.serving.latency import SPREADS, Curve, Latency
from forecastle.serving.policy import ALL, LIMIT, PIPELINE_SECONDS, moved

MOST = 256
"""The most requests that an adaptive batch ever holds."""

IN_TIME, PAYS, TRIAL = "in time", "pays", "trial"
"""Why a batch has its size: more would be late; more answer no more a second; a larger size is tried."""

ENOUGH = 0.97
"""A size that answers this share of the most requests a second that any size does is as good as that one."""

CAREFUL = 1.1
"""How much longer than foretold a size that was never tried must be able to take."""

TRIALS = 5
"""How often a size is tried before it is judged."""

ROOM = 0.55
"""What share of what a request has in all a batch may take, where the next is sent only when it is done."""

RETRY = (256, 8192)
"""After how many batches that leave requests waiting larger sizes are tried anew: at first, and at the most."""

_FORGIVING = 1.05
"""By what factor a batch raises what requests are taken to have in all, after one that had little."""

_PLAN_BATCHES = 32
_PLAN_SECONDS = 0.02
"""A plan is made anew after so many batches, or so many seconds of them; it takes some 30 microseconds."""


class _Trial(NamedTuple):
    """A size to try next, 0 for none, and what it is foretold to take: on average, at its tail, and at the best."""

    size: int
    mean: float = 0.0
    tail: float = 0.0
    best: float = 0.0


_NONE = _Trial(0)


class AdaptiveBatch:
    """At most ``limit`` requests; how many, it learns. What waits goes at once, unless ``delay`` is set."""

    def __init__(self, limit: int = MOST, delay: float = 0.0) -> None:
        self.limit = limit
        self.delay = delay
        self.enough = limit
        self.reason = ""
        self._latency = Latency(limit)
        self._sizes = self._latency.sizes
        # By rung, up to the size that pays: what a batch takes on average, at its tail, and if all goes well.
        self._means = [0.0]
        self._tails = [0.0]
        self._least = [0.0]
        self._trial = _NONE
        self._tried = 0  # the size of the last trial, until a batch that pays has followed it
        self._awaited = 0  # the size of a trial whose outcome is not known yet
        self._foretold = 0.0  # what the last trial was foretold to take on average
        self._slo = math.inf  # the least that a request had lately, from accept to deadline
        self._room = math.inf  # how long a batch may take on average
        self._used = 1  # the size of the last batch that left requests waiting
        self._retry = self._until_retry = RETRY[0]
        self._regimes = 0
        self._until_plan = 1
        self._spent = 0.0
        self._batch_seconds: float | None = None
        self._item_seconds = 0.0

    def size(self, share: int, budget: float, whole: float) -> int:
        """Return the share, within what pays and what is in time."""
        self._slo = slo = min(whole, self._slo * _FORGIVING)
        means = self._means
        room = slo * 2.0 * ROOM / (1 + self.depth())
        if room < means[0]:
            room = slo  # not even one at a time leaves time for who waits meanwhile: all go at once
        self._room = room
        size = full = self._sizes[max(0, bisect_right(means, room) - 1)]
        behind = False
        if budget < room:
            fits = self._sizes[max(0, bisect_right(self._tails, budget) - 1)]
            behind = budget < self._tails[0] or (fits < full < share)
            if not behind and fits < full:
                size = fits
        if share <= size:
            self.reason = ALL
            return share
        self.reason = IN_TIME if size < self._sizes[len(means) - 1] else LIMIT if size == self.limit else PAYS
        self._used = size
        self._until_retry -= 1
        if self._tried > size:
            self._tried = 0  # after a trial that did not pay comes a batch that does
            return size
        trial = self._trial
        if trial.size > size and (trial.best <= room if behind else trial.mean <= room and trial.tail <= budget):
            self._trial, self._tried, self._foretold = _NONE, trial.size, min(trial.mean, room)
            self._awaited = size = min(share, trial.size)
            self.reason = TRIAL
        return size

    def least(self, size: int) -> float:
        """Return the seconds below which a batch of this size hardly ever ends: its mean and one spread."""
        rung = self._latency.rung(size)
        return self._least[rung] if rung < len(self._least) else self._foretold

    def foretold(self, size: int) -> float:
        """Return the mean of a batch of this size."""
        rung = self._latency.rung(size)
        return self._means[rung] if rung < len(self._means) else self._foretold

    def wait(self, ahead: int) -> float:
        """Return what the full batches before take, and then one more; 0 while larger ones are tried.

        Until then many must be let wait: else nobody would learn what larger batches take.
        """
        trial, means = self._trial, self._means
        if trial.size and min(trial.mean, trial.best) <= self._room:
            return 0.0
        full = max(0, bisect_right(means, self._room) - 1)
        return (ahead // self._sizes[full] + 1) * means[full]

    def depth(self) -> int:
        """Return 2 for a model quick enough that its replica would otherwise wait for the next batch."""
        seconds = self._batch_seconds
        return 2 if seconds is not None and seconds < PIPELINE_SECONDS else 1

    def observe(self, size: int, seconds: float, elapsed: float) -> None:
        """Learn from a batch, and plan anew once there is enough to plan on."""
        self._batch_seconds = moved(self._batch_seconds, seconds)
        self._until_plan -= 1
        self._spent += elapsed
        new = self._latency.observe(size, elapsed)
        if new or size == self._awaited or self._until_plan <= 0 or self._spent >= _PLAN_SECONDS:
            self._plan()

    @property
    def item_seconds(self) -> float:
        """What one request costs a replica, as far as known."""
        return self._item_seconds

    def _plan(self) -> None:
        """Find the size that pays, and the one to try next."""
        self._until_plan, self._spent = _PLAN_BATCHES, 0.0
        self._forget()
        sizes, curve = self._sizes, self._latency.curve()
        rates = [
            size / (mean + doubt * (tail - mean))  # what is certain of it, so that luck makes no size look good
            for size, mean, tail, doubt in zip(sizes, curve.means, curve.tails, self._latency.doubts(), strict=False)
        ]
        good = ENOUGH * max(rates)
        pays = next(rung for rung, rate in enumerate(rates) if rate >= good)
        self._awaited = 0
        self._means = curve.means[: pays + 1]
        self._tails = curve.tails[: pays + 1]
        self._least = [mean + (tail - mean) / SPREADS for mean, tail in zip(self._means, self._tails, strict=True)]
        self._item_seconds = self._means[pays] / sizes[pays]
        self._trial = self._next_trial(curve, pays)
        self.enough = max(sizes[max(0, bisect_right(self._means, self._room) - 1)], self._trial.size)

    def _forget(self) -> None:
        """From time to time, and the more rarely the longer all stays as it is, know nothing of larger sizes."""
        if self._latency.regimes != self._regimes:
            self._regimes = self._latency.regimes
            self._retry = self._until_retry = RETRY[0]
        elif self._until_retry <= 0:
            self._latency.forget_above(self._used)
            self._retry = self._until_retry = min(2 * self._retry, RETRY[1])

    def _next_trial(self, curve: Curve, pays: int) -> _Trial:
        """Choose the size to try next: up to twice the one that pays, in careful steps."""
        sizes, means, tails, top = self._sizes, curve.means, curve.tails, len(curve.means) - 1
        count, mean = self._latency.count, means[top]
        if top > pays and count(top) < TRIALS:
            return _Trial(sizes[top], mean, tails[top], means[pays])  # if it took long, that may have been bad luck
        if sizes[top] >= 2 * sizes[pays] or top + 1 == len(sizes):
            new = next((rung for rung in range(pays + 1, top) if not count(rung)), 0)
            return _Trial(sizes[new], means[new], tails[new], means[pays]) if new else _NONE
        slope = curve.slope()
        farthest = min(2 * sizes[top], sizes[top] + (self._room / CAREFUL - mean) / max(slope, 1e-9))
        new = max(top + 1, bisect_right(sizes, farthest) - 1)
        more = slope * (sizes[new] - sizes[top])
        careful = CAREFUL * (mean + more) <= self._room
        tail = CAREFUL * (1.0 + more / mean) * tails[top]
        return _Trial(sizes[new], mean + more, tail, mean + more if careful else mean)
