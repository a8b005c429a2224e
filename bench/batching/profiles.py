"""What models cost: the seconds that a batch of n takes, by kind of model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

Cost = Callable[[int, float, Random], float]
"""From the size of a batch, the time at which it begins and a source of chance to the seconds that it takes."""

LIMIT = 64
"""The most requests in a batch, of every policy in the comparison."""


@dataclass(frozen=True)
class Profile:
    """A kind of model: its cost, the objective that its requests have, in seconds, and what is said of both.

    ``usual`` is the mean cost of a batch, of the costliest regime where there are several and it is not ``regular``.
    ``saves`` is false where larger batches answer no more requests a second. A profile with chance in its cost, or with
    regimes, is judged over several ``seeds``: what one of them shows differs from the next by more than policies do.
    """

    name: str
    cost: Cost
    usual: Callable[[int], float]
    slo: float = 0.1
    saves: bool = True
    regular: bool = True
    seeds: int = 1

    @property
    def capacity(self) -> float:
        """Requests per second that one replica can answer in time, at most: two batches in a row fit the objective."""
        sizes = [n for n in range(1, LIMIT + 1) if 2 * self.usual(n) <= self.slo]
        return max(n / self.usual(n) for n in sizes or [1])


def _steady(name: str, usual: Callable[[int], float], slo: float = 0.1, *, saves: bool = True) -> Profile:
    return Profile(name, lambda n, _now, _random: usual(n), usual, slo, saves)


def _overhead(n: int) -> float:
    return 0.010 + 0.0005 * n


def _noisy(n: int, _now: float, random: Random) -> float:
    """Vary by a fifth, and pause for 30 ms in one batch of fifty."""
    pause = 0.030 if random.random() < 0.02 else 0.0
    return _overhead(n) * random.lognormvariate(0.0, 0.2) + pause


REGIME_SECONDS = 8.0
"""How long a model costs the same in the profile of that name."""

SLOWER = 3.0
"""How many times as much it costs in every other stretch."""


def _regimes(n: int, now: float, _random: Random) -> float:
    """Cost three times as much in every other stretch of time."""
    return _overhead(n) * (SLOWER if int(now / REGIME_SECONDS) % 2 else 1.0)


PROFILES = (
    _steady("flat", lambda _: 0.020),
    _steady("linear", lambda n: 0.002 * n, saves=False),
    _steady("overhead", _overhead),
    _steady("step", lambda n: 0.004 + 0.008 * math.ceil(n / 32)),
    _steady("step, tight", lambda n: 0.030 * math.ceil(n / 16)),
    _steady("superlinear", lambda n: 0.004 + 0.0002 * n + 0.00001 * n * n),
    _steady("quick", lambda n: 0.0002 + 0.00001 * n, 0.010),
    Profile("noisy", _noisy, lambda n: 1.1 * _overhead(n) + 0.02 * 0.030, seeds=4),
    Profile("regimes", _regimes, lambda n: SLOWER * _overhead(n), regular=False, seeds=4),
)
