"""Every fixed size and the adaptive policy over the same arrivals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from bench.batching.arrivals import Arrivals, bursts, poisson
from bench.batching.profiles import LIMIT, PROFILES, Profile
from bench.batching.simulate import Run, chance, pooled, simulate
from forecastle.serving.adaptive import AdaptiveBatch
from forecastle.serving.policy import BatchPolicy, FixedBatch

SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Case:
    """A kind of model under a load: ``load`` is a share of what its replicas can answer in time at most."""

    profile: Profile
    arrivals: Arrivals
    load: float
    replicas: int = 1

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.load * self.profile.capacity * self.replicas

    def run(self, policy: Callable[[], BatchPolicy], count: int) -> Run:
        """Run a policy, anew for each seed; every policy meets the same arrivals and the same chance."""
        profile, runs = self.profile, []
        for seed in range(profile.seeds):
            times = self.arrivals(self.rate, count, chance(profile.name, self.arrivals.__name__, self.load, seed))
            work = partial(_cost, profile, chance(profile.name, seed))
            runs.append(simulate(policy(), work, times, profile.slo, self.replicas))
        return pooled(runs)


@dataclass(frozen=True)
class Comparison:
    """What came of a case of ``CASES``, with each fixed size and with the adaptive policy."""

    index: int
    fixed: dict[int, Run]
    adaptive: Run

    @property
    def case(self) -> Case:
        """The case."""
        return CASES[self.index]

    @property
    def best(self) -> int:
        """The fixed size that answers the most requests in time; the smallest of those that do."""
        return max(self.fixed, key=lambda size: (self.fixed[size].rate, -size))


LOADS = ((poisson, 0.3), (poisson, 0.7), (poisson, 0.85), (bursts, 0.3), (bursts, 0.7), (poisson, 1.5), (bursts, 1.5))
CASES = (
    *(Case(profile, arrivals, load) for profile in PROFILES for arrivals, load in LOADS),
    *(Case(profile, poisson, 0.85, replicas=2) for profile in PROFILES),
)


def compare(index: int, count: int) -> Comparison:
    """Run a case of ``CASES`` with every policy."""
    case = CASES[index]
    fixed = {size: case.run(partial(FixedBatch, size), count) for size in SIZES}
    return Comparison(index, fixed, case.run(partial(AdaptiveBatch, LIMIT), count))


def _cost(profile: Profile, random: Random, size: int, now: float) -> float:
    return profile.cost(size, now, random)
