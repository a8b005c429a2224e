"""``python -m bench.svm``: what batches gain for a linear support vector machine, in a replica and end to end.

The shape that Clipper published: Crankshaw et al., "Clipper: A Low-Latency Online Prediction Serving System" (NSDI
2017), figures 3 and 4, at a latency objective of 20 ms. The model is scikit-learn's, of the 1,797 handwritten digits
that come with it, which are standardised first, as such a model wants them.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import joblib
from cyclopts import App
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from bench import process, wrk
from bench.workloads import CACHE, Workload
from forecastle.messages import Part
from forecastle.replica.executor import Executor, Job
from forecastle.replica.loading import load_model

SLO_MS = 20.0
CONNECTIONS = (4, 16, 64, 128, 256)
SIZES = (1, 8, 32, 64, 128, 256)
WAYS = {"one at a time": ("1", "0"), "adaptive": ("-1", "0"), "adaptive, 2 ms delay": ("-1", "2ms")}
FLOORS = {"in the replica": 20.0, "end to end": 8.0}

app = App(help="Measure what batches gain for a linear SVM.", version_flags=())


@app.default
def run(*, seconds: int = 3, rounds: int = 3, check: bool = False) -> int:
    """Print requests per second, and what batches gain.

    Args:
        seconds: How long each load lasts.
        rounds: How often everything is measured; every other round runs backwards, and medians count.
        check: Exit with 1 if batches gain less than 20 times in the replica, or 8 times end to end.
    """
    wrk.require()
    workload = _svm()
    inside, outside = defaultdict(list), defaultdict(list)
    for turn in range(rounds):
        step = 1 if turn % 2 == 0 else -1
        for size, rate in _in_a_replica(workload):
            inside[size].append(rate)
        for way in list(WAYS)[::step]:
            for connections in CONNECTIONS[::step]:
                outside[way, connections].append(_end_to_end(workload, way, connections, seconds))
    rates = {size: statistics.median(each) for size, each in inside.items()}
    print("in the replica, without HTTP:")
    for size, rate in rates.items():
        print(f"  batches of {size:3}  {rate:10,.0f} requests/s  {1000 * size / rate:7.2f} ms")
    best = max(rate for size, rate in rates.items() if 1000 * size / rate <= SLO_MS)
    print("end to end:")
    served: dict[str, float] = defaultdict(float)
    for way in WAYS:
        for connections in CONNECTIONS:
            rate, p99 = (statistics.median(each) for each in zip(*outside[way, connections], strict=True))
            print(f"  {way:20} {connections:4} connections  {rate:10,.0f} requests/s  p99 {p99:7.2f} ms")
            if p99 <= SLO_MS:
                served[way] = max(served[way], rate)
    gains = {"in the replica": best / rates[1], "end to end": served["adaptive"] / served["one at a time"]}
    for where, gain in gains.items():
        floor = FLOORS[where]
        print(f"{'holds' if gain >= floor else 'FAILS'}: batches gain {where}: {gain:.1f} times (floor {floor:g})")
    print(f"a delay of 2 ms gains {served['adaptive, 2 ms delay'] / served['adaptive']:.2f} times")
    return 1 if check and any(gains[where] < floor for where, floor in FLOORS.items()) else 0


def _svm() -> Workload:
    CACHE.mkdir(parents=True, exist_ok=True)
    path: Path = CACHE / "svm.joblib"
    pixels, digits = load_digits(return_X_y=True)
    joblib.dump(make_pipeline(StandardScaler(), LinearSVC(dual=False)).fit(pixels, digits), path)
    body = json.dumps(pixels[0].tolist()).encode()
    return Workload("svm", path, body, "application/json")


def _in_a_replica(workload: Workload) -> list[tuple[int, float]]:
    """Return requests per second by the size of batches: read, predict, write, between a replica's two frames."""
    hooks, _ = load_model(workload.artifact)
    executor = Executor(hooks)
    parts = [Part("", workload.content_type, workload.body)]
    found = []
    for size in SIZES:
        jobs = [Job("", parts, "*/*", math.inf) for _ in range(size)]
        executor.answer(jobs)
        done, began = 0, time.perf_counter()
        while time.perf_counter() < began + 0.5:
            executor.answer(jobs)
            done += size
        found.append((size, done / (time.perf_counter() - began)))
    return found


def _end_to_end(workload: Workload, way: str, connections: int, seconds: int) -> tuple[float, float]:
    """Return requests per second, and the 99th percentile of their latency in milliseconds."""
    port, (size, delay) = process.free_port(), WAYS[way]
    command = [*process.forecastle(workload, port), "--batch-size", size, "--batch-delay", delay]
    with process.running(command, port, workload) as server:
        wrk.load(server.url, workload, connections=connections, seconds=2)  # it learns
        load = wrk.load(server.url, workload, connections=connections, seconds=seconds)
        assert not load.lost
        return load.rate, load.p99


if __name__ == "__main__":
    sys.exit(app())
