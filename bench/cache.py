"""``python -m bench.cache``: what an application's cached answer costs, beside a bare ASGI response."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from dataclasses import replace
from typing import Any

import httpx
from cyclopts import App

from bench import process, wrk
from bench.workloads import Workload, build
from forecastle.client.control import Control

MOST = 1.2
"""How much dearer a cached answer may be than a bare ASGI response."""

CONNECTIONS = 64
SUBJECTS = ("raw ASGI", "cached", "not cached")

app = App(help="Measure what a cached answer costs.", version_flags=())


@app.default
def run(*, seconds: int = 4, rounds: int = 3, check: bool = False) -> int:
    """Print requests per second and processor time of each, and the ratio of the medians.

    Args:
        seconds: How long each load lasts.
        rounds: How often everything is measured; every other round runs backwards.
        check: Exit with 1 if a cached answer costs more than 1.2 bare responses.
    """
    wrk.require()
    model = next(workload for workload in build() if workload.name == "W2")
    rates, costs = defaultdict(list), defaultdict(list)
    for turn in range(rounds):
        for subject in SUBJECTS if turn % 2 == 0 else SUBJECTS[::-1]:
            rate, cost = _measured(subject, model, seconds)
            rates[subject].append(rate)
            costs[subject].append(cost)
    print(f"{'subject':12} {'requests/s':>10} {'CPU us/request':>15}")
    for subject in SUBJECTS:
        print(f"{subject:12} {statistics.median(rates[subject]):10,.0f} {statistics.median(costs[subject]):15.1f}")
    ratio = statistics.median(rates["raw ASGI"]) / statistics.median(rates["cached"])
    print(
        f"{'holds' if ratio <= MOST else 'FAILS'}: a cached answer, in bare ASGI responses: {ratio:.2f} (most {MOST:g})"
    )
    return 1 if check and ratio > MOST else 0


def _measured(subject: str, model: Workload, seconds: int) -> tuple[float, float]:
    """Return requests per second, and microseconds of processor time for each."""
    port, management = process.free_port(), process.free_port()
    asked = replace(model, name="app", body=json.dumps({"input": json.loads(model.body)}).encode())
    if subject == "raw ASGI":
        with process.running(process.plain("raw_asgi", port), port, asked) as server:
            return _load(server, asked, seconds)
    command = [word for word in process.forecastle(model, port) if word != "--management-port"]
    at = command.index(str(port)) + 1
    command[at : at + 1] = ["--management-port", str(management), "--store", "memory"]
    with process.running(command, port, model) as server:
        application: dict[str, Any] = {"name": "app", "input_type": "json", "default_output": "none"}
        application |= {"slo_micros": 10_000_000, "models": [model.name]}
        application |= {} if subject == "cached" else {"cache_bytes": 0}
        Control(f"http://127.0.0.1:{management}").register(application)
        found = _load(server, asked, seconds)
        reply = httpx.post(f"{server.url}/app/predict", content=asked.body).json()
        assert reply["default"] is False
        hits = Control(f"http://127.0.0.1:{management}").status()["applications"][0]["cache_hits"]
        assert (hits > 0) == (subject == "cached")
        return found


def _load(server: process.Server, asked: Workload, seconds: int) -> tuple[float, float]:
    wrk.load(server.url, asked, connections=CONNECTIONS, seconds=1)
    before = server.cpu_seconds()
    load = wrk.load(server.url, asked, connections=CONNECTIONS, seconds=seconds)
    assert not load.lost
    return load.rate, (server.cpu_seconds() - before) / (load.rate * seconds) * 1e6


if __name__ == "__main__":
    sys.exit(app())
