"""``python -m bench.overload``: what is answered in time, as more is asked than can be answered."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from cyclopts import App

from bench.overload import load
from bench.overload.cost import BASE, EACH, MOST
from bench.overload.subjects import Subject, peer, running, subjects

RESULTS = Path(__file__).parents[1] / "results"
SHARES = (0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0)
"""Offered loads, as shares of what the model can do in the largest batches that peers are allowed."""

KEPT = 0.95
"""The share of its sustainable rate that Forecastle answers in time at twice that rate."""

app = App(help="Measure goodput against offered load, beside LitServe and BentoML.", version_flags=())


@app.default
def run(*, seconds: float = 4.0, slo_ms: float = 200.0, only: str = "", check: bool = False) -> int:
    """Print what each server answers in time, and draw it.

    Args:
        seconds: How long each load lasts.
        slo_ms: The latency objective.
        only: Servers, apart by commas; all unless it is said.
        check: Exit with 1 if Forecastle answers less than 95 % of its sustainable rate at twice that.
    """
    capacity = MOST / (BASE + EACH * MOST)
    found: dict[str, list[load.Goodput]] = {}
    kept: dict[str, float] = {}
    heads = ("offered/s", "in time/s", "share", "p99 ms", "refused after ms")
    print(f"{'server':10} {heads[0]:>9} {heads[1]:>9} {heads[2]:>6} {heads[3]:>8} {heads[4]:>17}")
    for subject in subjects():
        if not only or subject.name in only.split(","):
            found[subject.name], kept[subject.name] = _measured(subject, capacity, seconds, slo_ms / 1000)
    RESULTS.mkdir(exist_ok=True)
    data, picture = RESULTS / "overload.json", RESULTS / "overload.png"
    servers = {name: [asdict(each) for each in points] for name, points in found.items()}
    data.write_text(json.dumps({"slo_ms": slo_ms, "capacity": capacity, "servers": servers}, indent=1))
    plot = [peer("matplotlib==3.10.8"), str(Path(__file__).with_name("plot.py")), str(data), str(picture)]
    subprocess.run(plot, check=True)
    for name, share in kept.items():
        print(f"{name}: at twice its sustainable rate it answers {share:.0%} of that rate in time")
    print(f"drawn in {picture}")
    return 1 if check and kept.get("Forecastle", 1.0) < KEPT else 0


def _measured(subject: Subject, capacity: float, seconds: float, slo: float) -> tuple[list[load.Goodput], float]:
    """Return the points of the curve, and what is left of the sustainable rate at twice that rate."""
    points = []
    with running(subject, slo) as port:

        def point(rate: float, seed: int) -> load.Goodput:
            outcomes = load.run(port, subject.request, subject.is_good, list(load.arrivals(rate, seconds, seed)))
            found = load.judge(outcomes, seconds, slo)
            print(
                f"{subject.name:10} {found.offered:9.0f} {found.good:9.0f} {found.in_time:6.0%} {found.p99:8.0f} "
                f"{found.p50_other:17.1f}",
                flush=True,
            )
            return found

        warm = list(load.arrivals(capacity, 2.0, 0))
        load.run(port, subject.request, subject.is_good, warm)  # what learns, learns
        for seed, share in enumerate(SHARES):
            points.append(point(share * capacity, seed))
        most = load.sustainable(points)
        last = point(2 * most, len(SHARES)) if most else None
    if last is not None:
        points.append(last)
    return sorted(points, key=lambda each: each.offered), last.good / most if last is not None else 0.0


if __name__ == "__main__":
    sys.exit(app())
