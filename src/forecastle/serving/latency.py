"""What a batch of n requests costs a replica: mean and spread by size, learned from the batches that ran.

Sizes are told apart on a ladder, every one up to 16 and eight to a doubling from there, so that memory and work are
bounded whatever the limit. A batch between two rungs counts for the upper one: on a model whose cost goes by steps, 33
costs what 36 does, and not what 32 does.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

MEMORY = 32
"""Over how many batches of a size its mean and spread are taken; older ones fade away exponentially."""

HALF_LIFE = 128
"""After how many batches what was known of a size counts half, beside what is known of its neighbours."""

SPREADS = 3.0
"""How many spreads (mean absolute deviations) above the mean the tail lies; about the 99th of a hundred."""

STREAK = 4
"""How many batches in a row must be off, all to the same side, to mean that the model costs something else now."""

_SHARES = tuple(1.0 / (count + 1) for count in range(MEMORY))
_DOUBTS = tuple(1.0 / (SPREADS * max(1, count) ** 0.5) for count in range(MEMORY))
_FIRST_SPREAD = 0.1
_YOUNG = 5


def ladder(limit: int) -> list[int]:
    """Return the sizes that are told apart, from 1 to ``limit``."""
    sizes = list(range(1, min(limit, 16) + 1))
    step = 2
    while sizes[-1] < limit:
        sizes.append(min(limit, sizes[-1] + step))
        if sizes[-1] == 16 * step:
            step *= 2
    return sizes


class Curve(NamedTuple):
    """What the sizes of the ladder cost, in seconds, from 1 to the largest seen; neither list ever falls."""

    sizes: list[int]
    means: list[float]
    tails: list[float]

    def slope(self) -> float:
        """Return what a further request adds to the largest size seen, by the line to it from the one half as large."""
        top = len(self.means) - 1
        most, mean = self.sizes[top], self.means[top]
        half = bisect_left(self.sizes, most / 2, 0, top)
        return mean / most if half == top else (mean - self.means[half]) / (most - self.sizes[half])


class Latency:
    """Learns what batches cost; ``batches`` counts those it has seen, ``regimes`` the times that all costs changed."""

    __slots__ = (
        "_counts",
        "_last",
        "_means",
        "_rung",
        "_seen",
        "_sign",
        "_spreads",
        "_streak",
        "batches",
        "regimes",
        "sizes",
    )

    def __init__(self, limit: int) -> None:
        self.sizes = ladder(limit)
        self.batches = 0
        self.regimes = 0
        self._rung = [0] * (limit + 1)
        for i in range(1, len(self.sizes)):
            for size in range(self.sizes[i - 1] + 1, self.sizes[i] + 1):
                self._rung[size] = i
        rungs = len(self.sizes)
        self._means = [0.0] * rungs
        self._spreads = [0.0] * rungs
        self._counts = [0] * rungs
        self._seen = [0] * rungs
        self._last = 0
        self._streak: list[tuple[int, float, float]] = []  # rung, seconds and those expected of batches in a row
        self._sign = 0  # to which side these were off

    def observe(self, size: int, seconds: float) -> bool:
        """Learn that a batch took so long; true where the curve is another one now: a new size, a new regime."""
        self.batches += 1
        i = self._rung[size]
        count = self._counts[i]
        self._seen[i] = self.batches
        if not count:
            self._learn(i, min(seconds, self._ceiling(i)))
            self._compare(i, seconds)
            return True
        mean, spread = self._means[i], self._spreads[i]
        off = seconds - mean
        far = off if off >= 0.0 else -off
        bound = 0.25 * mean + 4.0 * spread
        if far > bound:
            return self._strange(i, seconds, bound)
        if count < _YOUNG:
            changed = self._compare(i, seconds)
            if changed:
                return True
        elif self._streak:
            self._streak.clear()
        self._last = i
        share = _SHARES[count]
        self._means[i] = mean + share * off
        self._spreads[i] = spread + share * (far - spread)
        if count < MEMORY - 1:
            self._counts[i] = count + 1
        return False

    def rung(self, size: int) -> int:
        """Return where a size lies on the ladder."""
        return self._rung[size]

    def count(self, rung: int) -> int:
        """Return how often a size was seen, as far as remembered."""
        return self._counts[rung]

    def doubts(self) -> list[float]:
        """Return how much of the way to its tail each mean may lie too low, for as often as its size was seen."""
        return [_DOUBTS[count] for count in self._counts]

    def forget_above(self, size: int) -> None:
        """Know nothing of larger sizes any more."""
        for i in range(self._rung[size] + 1, len(self.sizes)):
            self._counts[i] = 0

    def curve(self) -> Curve:
        """Return what each size costs, as far as known: the sizes seen, and a line between two of them.

        A larger batch never costs less: where what was seen says so, it is averaged, each size by how often and how
        lately it was seen.
        """
        blocks: list[tuple[float, float, float, int]] = []  # mean, tail, weight, and the last rung, of what is averaged
        for i, count in enumerate(self._counts):
            if not count:
                continue
            mean = self._means[i]
            tail = mean + SPREADS * self._spreads[i]
            weight = count * 0.5 ** ((self.batches - self._seen[i]) / HALF_LIFE) + 1e-9
            first = i
            while blocks and blocks[-1][0] >= mean:
                other_mean, other_tail, other_weight, _ = blocks.pop()
                total = weight + other_weight
                mean = (mean * weight + other_mean * other_weight) / total
                tail = (tail * weight + other_tail * other_weight) / total
                weight = total
            blocks.append((mean, tail, weight, first))
        return self._filled(blocks)

    def _filled(self, blocks: list[tuple[float, float, float, int]]) -> Curve:
        sizes, counts = self.sizes, self._counts
        means: list[float] = []
        tails: list[float] = []
        last = 0.0
        for mean, tail, _, end in blocks:
            top = max(tail, last)
            start = next(i for i in range(len(means), end + 1) if counts[i])
            if means and start > len(means):
                low, lowest_tail, below = means[-1], tails[-1], sizes[len(means) - 1]
                for i in range(len(means), start):
                    part = (sizes[i] - below) / (sizes[start] - below)
                    means.append(low + part * (mean - low))
                    tails.append(lowest_tail + part * (top - lowest_tail))
            missing = end + 1 - len(means)
            means += [mean] * missing
            tails += [top] * missing
            last = top
        return Curve(sizes, means, tails)

    def _learn(self, i: int, seconds: float) -> None:
        self._means[i] = max(seconds, 1e-7)
        last, self._last = self._last, i
        ratio = self._spreads[last] / self._means[last] if self._counts[last] else _FIRST_SPREAD
        self._spreads[i] = ratio * self._means[i]
        self._counts[i] = 1

    def _strange(self, i: int, seconds: float, bound: float) -> bool:
        """Take a batch that is far off: alone it counts little, a streak of its kind is a new regime."""
        mean, count = self._means[i], self._counts[i]
        sign = 1 if seconds > mean else -1
        if sign > 0 and count == 1:
            self._means[i] = (mean + min(seconds, self._ceiling(i))) / 2
            self._counts[i] = 2
            return self._compare(i, seconds)
        if sign < 0 and count < _YOUNG:
            # The first batches of a size pay for what the later ones find done, or it was only thought to take so long.
            self._learn(i, seconds)
            if count > 1 or seconds < 0.6 * mean:
                self._note(i, seconds, mean, sign)
            return True
        share = _SHARES[MEMORY - 1]
        self._means[i] = mean + share * sign * bound
        self._spreads[i] += share * (bound - self._spreads[i])
        return self._note(i, seconds, mean, sign)

    def _ceiling(self, i: int) -> float:
        """Return what the next larger size costs that is well known: a smaller one that takes longer was held up."""
        for j in range(i + 1, len(self.sizes)):
            if self._counts[j] >= _YOUNG:
                return self._means[j] + self._spreads[j]
        return math.inf

    def _compare(self, i: int, seconds: float) -> bool:
        """Compare a batch of a size that is hardly known with the next larger and smaller ones that are."""
        ceiling = self._ceiling(i)
        if seconds > 1.25 * ceiling:
            return self._note(i, seconds, ceiling, 1)
        for j in range(i - 1, -1, -1):
            if self._counts[j] >= _YOUNG:
                expected = self._means[j] * self.sizes[i] / self.sizes[j]
                return seconds > 1.25 * expected + 4.0 * self._spreads[j] and self._note(i, seconds, expected, 1)
        return False

    def _note(self, i: int, seconds: float, expected: float, sign: int) -> bool:
        """Add to the streak; true where it is long enough for a new regime."""
        if self._streak and sign != self._sign:
            self._streak.clear()
        self._sign = sign
        self._streak.append((i, seconds, expected))
        if len(self._streak) < STREAK:
            return False
        self._change()
        return True

    def _change(self) -> None:
        """Begin a new regime: what was known of smaller sizes holds in proportion, until they are seen again."""
        ratio = sum(seconds for _, seconds, _ in self._streak) / sum(expected for _, _, expected in self._streak)
        lately = self.batches - 2 * STREAK
        for i, count in enumerate(self._counts):
            if count >= _YOUNG or self._seen[i] < lately:  # else it was first seen in the new regime
                self._means[i] = max(ratio * self._means[i], 1e-7)
                self._spreads[i] *= ratio
                self._counts[i] = min(count, 1)
        seen: dict[int, list[float]] = {}
        for i, seconds, _ in self._streak:
            seen.setdefault(i, []).append(seconds)
        for i, all_seconds in seen.items():
            self._means[i] = max(sum(all_seconds) / len(all_seconds), 1e-7)
            self._counts[i] = len(all_seconds)
        self.forget_above(self.sizes[max(seen)])
        self._streak.clear()
        self.regimes += 1
