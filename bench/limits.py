"""The limits of one process: the same hooks over the same bodies, in this process and one thread, without a server."""

from __future__ import annotations

import math
import time

from bench.workloads import Workload
from forecastle.errors import RequestError
from forecastle.messages import Part
from forecastle.replica.executor import Executor, Job
from forecastle.replica.loading import load_model

BATCHES = {"W1": (1, 32), "W2": (1, 32), "W3": (1,)}


def measure(workload: Workload, seconds: float) -> dict[int, float]:
    """Return requests per second by batch size: read, predict, write, as a replica does it between its two frames."""
    hooks, _ = load_model(workload.artifact)
    executor = Executor(hooks)
    return {size: _rate(executor, workload, size, seconds) for size in BATCHES[workload.name]}


def _rate(executor: Executor, workload: Workload, size: int, seconds: float) -> float:
    parts = [Part("", workload.content_type, workload.body)]

    def answer() -> None:
        for one in executor.answer([Job("", parts, "*/*", math.inf) for _ in range(size)]):
            assert not isinstance(one, RequestError), one.message

    answer()
    answered, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        answer()
        answered += size
    return answered / (time.perf_counter() - began)
