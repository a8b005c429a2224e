"""When requests come: a rate and a seed make the same arrivals every time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Arrivals = Callable[[float, int, Random], list[float]]
"""From a rate, a number of requests and a source of chance to the seconds at which they come, in order."""

BURST = 8
"""How many requests a burst has on average."""


def poisson(rate: float, count: int, random: Random) -> list[float]:
    """Return requests that come one by one, none knowing of the others."""
    now, times = 0.0, []
    for _ in range(count):
        now += random.expovariate(rate)
        times.append(now)
    return times


def bursts(rate: float, count: int, random: Random) -> list[float]:
    """Return requests that come many at once, as a page with many pictures sends them."""
    now, times = 0.0, list[float]()
    while len(times) < count:
        now += random.expovariate(rate / BURST)
        size = 1
        while random.random() > 1.0 / BURST:
            size += 1
        times += [now] * size
    return times[:count]


def evenly(rate: float, count: int, random: Random) -> list[float]:  # noqa: ARG001
    """Return requests that come at equal distances."""
    return [i / rate for i in range(1, count + 1)]
