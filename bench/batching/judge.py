"""What must hold of the adaptive policy, and where it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.batching.arrivals import evenly, poisson
from bench.batching.profiles import LIMIT, Profile
from bench.batching.simulate import chance, simulate
from bench.batching.sweep import Comparison
from forecastle.serving.adaptive import AdaptiveBatch

IN_TIME = 0.99
LEARNING = 0.01
"""The share of the requests that it may cost to learn of new regimes, which a size found in hindsight knows."""

RATE_SHARE = 0.9
RECOVERY_BATCHES = 50
SLOW_BATCH = 100
BATCHES = 2 * (SLOW_BATCH + RECOVERY_BATCHES)
SMALL = 2.0
"""The mean size of batches that stay small, where larger ones answer no more."""


def faults(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Tell where the adaptive policy is too late, too slow, or takes larger batches than it should."""
    most: dict[str, float] = {}
    for comparison in comparisons:
        profile = comparison.case.profile
        rate = comparison.fixed[comparison.best].rate / comparison.case.replicas
        if profile.regular:
            most[profile.name] = max(most.get(profile.name, 0.0), rate)
    for comparison in comparisons:
        case, ours = comparison.case, comparison.adaptive
        name = f"{case.profile.name}, {case.arrivals.__name__} at {case.load:g}, {case.replicas} replica(s)"
        kept = max(run.in_time for run in comparison.fixed.values())
        enough = IN_TIME if case.profile.regular else IN_TIME - LEARNING
        if kept >= IN_TIME and ours.in_time < enough:
            yield f"{name}: {ours.in_time:.2%} in time, where a fixed size has {kept:.2%}"
        best = comparison.fixed[comparison.best].rate
        if case.load > 1.0 and case.profile.regular:
            best = max(best, most[case.profile.name] * case.replicas)
        if ours.rate < RATE_SHARE * best:
            yield f"{name}: {ours.rate:.0f} requests/s in time, where a fixed size has {best:.0f}"
        if not case.profile.saves and ours.mean_size > SMALL:
            yield f"{name}: batches of {ours.mean_size:.1f} on average, which gain nothing"
        if max(ours.sizes) > LIMIT:
            yield f"{name}: a batch of {max(ours.sizes)}, where {LIMIT} is the limit"


def lone(profile: Profile, count: int) -> Iterator[str]:
    """Tell whether a request that comes alone is held, or made one of several."""
    random = chance(profile.name, "lone")
    times = evenly(0.1 / profile.slo, count, random)
    run = simulate(AdaptiveBatch(LIMIT), lambda size, now: profile.cost(size, now, random), times, profile.slo)
    if set(run.sizes) != {1} or run.waited > 0.0 or run.in_time < 1.0:
        yield f"{profile.name}: a lone request waits {run.waited:g} s, in batches of up to {max(run.sizes)}"


def recovery(profile: Profile) -> Iterator[str]:
    """Tell whether one batch that takes ten times the objective is felt longer than ``RECOVERY_BATCHES`` later."""
    policy = AdaptiveBatch(LIMIT)
    random = chance(profile.name, "recovery")
    times = poisson(0.7 * profile.capacity, BATCHES * LIMIT, random)
    costs: list[float] = []
    began: list[float] = []

    def work(size: int, now: float) -> float:
        costs.append(policy.item_seconds)
        began.append(now)
        return 10 * profile.slo if len(costs) == SLOW_BATCH else profile.cost(size, now, random)

    run = simulate(policy, work, times, profile.slo)
    before, after = costs[SLOW_BATCH - 1], costs[SLOW_BATCH + RECOVERY_BATCHES]
    until = began[SLOW_BATCH + RECOVERY_BATCHES]
    later = run.latencies[sum(when <= until for when in times) - len(times) :]
    in_time = sum(latency <= profile.slo for latency in later) / len(later)
    if in_time < IN_TIME or before < RATE_SHARE * after:
        yield (
            f"{profile.name}: {RECOVERY_BATCHES} batches after a slow one, {after * 1e3:.3f} ms a request instead of "
            f"{before * 1e3:.3f}, and {in_time:.2%} in time"
        )
