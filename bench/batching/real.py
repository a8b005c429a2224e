"""``python -m bench.batching.real``: the policies over real models, whose batches run and are timed as they come.

Arrivals are simulated and time is that of the batches, so nothing else that the machine does comes in between. What a
batch takes on its way to a replica and back is added as a constant.
"""

from __future__ import annotations

import math
import sys
import time

from cyclopts import App

from bench.batching.arrivals import poisson
from bench.batching.simulate import Run, Work, chance, simulate
from bench.workloads import Workload, build
from forecastle.messages import Part
from forecastle.replica.executor import Executor, Job
from forecastle.replica.loading import load_model
from forecastle.serving.adaptive import AdaptiveBatch
from forecastle.serving.policy import BatchPolicy, FixedBatch

LINK_SECONDS = 0.0001
SLOS = {"W1": 0.01, "W2": 0.01, "W3": 0.5}
SIZES = (1, 4, 8, 16, 32, 64)

app = App(help="Compare batching policies over real models.", version_flags=())


@app.default
def run(*, only: str = "W2,W3", seconds: float = 3.0) -> None:
    """Print what fixed sizes and the adaptive policy answer in time.

    Args:
        only: The workloads.
        seconds: How long each load lasts, in simulated time.
    """
    print(f"{'model':5} {'load':>4} {'rate/s':>7} {'policy':>9} {'size':>5} {'in time':>8} {'p50 ms':>7} {'p99 ms':>7}")
    for workload in build():
        if workload.name in only.split(","):
            _compare(workload, seconds)


def _compare(workload: Workload, seconds: float) -> None:
    work, slo = model(workload), SLOS[workload.name]
    capacity = max(_rate(work, size) for size in SIZES if 2 * size / _rate(work, size) <= slo)
    for load in (0.1, 0.7, 0.85, 1.5):
        times = poisson(load * capacity, max(100, int(load * capacity * seconds)), chance(workload.name, load))
        policies: dict[str, BatchPolicy] = {f"fixed {size}": FixedBatch(size) for size in SIZES}
        policies["adaptive"] = AdaptiveBatch()
        for name, policy in policies.items():
            print(_line(workload.name, load, load * capacity, name, simulate(policy, work, times, slo)), flush=True)


def model(workload: Workload) -> Work:
    """Return the model of a workload, warm: a function that runs a batch and says how long it took."""
    hooks, _ = load_model(workload.artifact)
    executor = Executor(hooks)
    parts = [Part("", workload.content_type, workload.body)]

    def work(size: int, now: float) -> float:  # noqa: ARG001
        jobs = [Job("", parts, "*/*", math.inf) for _ in range(size)]
        began = time.perf_counter()
        executor.answer(jobs)
        return time.perf_counter() - began + LINK_SECONDS

    for size in SIZES:
        work(size, 0.0)
    return work


def _rate(work: Work, size: int) -> float:
    taken = sorted(work(size, 0.0) for _ in range(5))
    return size / taken[2]


def _line(name: str, load: float, rate: float, policy: str, found: Run) -> str:
    return (
        f"{name:5} {load:4.2f} {rate:7.0f} {policy:>9} {found.mean_size:5.1f} {found.in_time:8.2%} "
        f"{found.quantile(0.5) * 1e3:7.1f} {found.quantile(0.99) * 1e3:7.1f}"
    )


if __name__ == "__main__":
    sys.exit(app())
