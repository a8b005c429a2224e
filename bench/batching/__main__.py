"""``python -m bench.batching``: judge the adaptive policy beside every fixed size, and exit with 1 where it fails."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from cyclopts import App

from bench.batching import judge
from bench.batching.sweep import CASES, Comparison, compare

REQUESTS = 6000
QUICK = ("flat", "linear", "overhead", "step, tight")

app = App(help="Judge the adaptive batching policy in simulated time.", version_flags=())


@app.default
def run(*, quick: bool = False) -> int:
    """Simulate every kind of model under every load, print a table, and say what does not hold.

    Args:
        quick: Only a few kinds of models, and one replica.
    """
    began = time.perf_counter()
    found = quickly() if quick else thoroughly()
    print(table(found))
    wrong = list(faults(found))
    for fault in wrong:
        print(f"FAILS: {fault}")
    print(f"{len(found)} cases, {len(wrong)} faults, {time.perf_counter() - began:.0f} s")
    return 1 if wrong else 0


def quickly() -> list[Comparison]:
    """Return what came of some cases."""
    chosen = [i for i, case in enumerate(CASES) if case.profile.name in QUICK and case.replicas == 1]
    return [compare(i, REQUESTS) for i in chosen]


def thoroughly() -> list[Comparison]:
    """Return what came of every case."""
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(partial(compare, count=REQUESTS), range(len(CASES))))


def faults(found: Sequence[Comparison]) -> Iterator[str]:
    """Tell all that does not hold."""
    yield from judge.faults(found)
    for profile in dict.fromkeys(comparison.case.profile for comparison in found):
        yield from judge.lone(profile, 500)
        if profile.regular:
            yield from judge.recovery(profile)


def table(found: Sequence[Comparison]) -> str:
    """Return a line for each case."""
    lines = [
        f"{'model':12} {'arrivals':8} {'load':>4} {'replicas':>8} {'rate/s':>7} | {'best fixed':>10} {'in time':>8} "
        f"{'p99 ms':>7} | {'adaptive: size':>14} {'in time':>8} {'p50 ms':>7} {'p99 ms':>7}"
    ]
    for one in found:
        case, best, ours = one.case, one.fixed[one.best], one.adaptive
        lines.append(
            f"{case.profile.name:12} {case.arrivals.__name__:8} {case.load:4.2f} {case.replicas:8} {case.rate:7.0f} | "
            f"{one.best:10} {best.in_time:8.2%} {best.quantile(0.99) * 1e3:7.1f} | "
            f"{ours.mean_size:14.1f} {ours.in_time:8.2%} {ours.quantile(0.5) * 1e3:7.1f} "
            f"{ours.quantile(0.99) * 1e3:7.1f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(app())
