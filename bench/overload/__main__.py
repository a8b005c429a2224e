"""``python -m bench.overload``: what is answered in time, as more is asked than can be answered."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from cyclopts import App

from bench.overload import load, table
from bench.overload.cost import BASE, EACH, MOST
from bench.overload.subjects import Subject, peer, running, subjects

RESULTS = Path(__file__).parents[1] / "results"
SHARES = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0)
"""Offered loads, as shares of what the model can do in the largest batches that peers are allowed."""

STEPS, REPEATS = 3, 3
"""How often the gap around the sustainable rate is halved, and how often twice that rate is asked for."""

RAMP = 1.0
"""Seconds of each load that are not judged: its queue fills."""

KEPT = 0.95
"""The share of its sustainable rate that Forecastle answers in time at twice that rate."""

app = App(help="Measure goodput against offered load, beside LitServe and BentoML.", version_flags=())


@app.default
def run(
    *, seconds: float = 5.0, slo_ms: float = 200.0, only: str = "", work: str = "sleep", check: bool = False
) -> int:
    """Print what each server answers in time, and draw it.

    Args:
        seconds: How long each load is judged.
        slo_ms: The latency objective.
        only: Servers, apart by commas; all unless it is said.
        work: What the model does for its time: sleep, as while a GPU computes, or cpu.
        check: Exit with 1 if Forecastle answers less than 95 % of its sustainable rate at twice that.
    """
    capacity = MOST / (BASE + EACH * MOST)
    chosen = [subject for subject in subjects() if not only or subject.name in only.split(",")]
    print(table.HEAD)
    curves = [_measured(subject, capacity, seconds, slo_ms / 1000, work) for subject in chosen]
    print("\n" + table.ratios(curves))
    name = "-".join(filter(None, ("overload", "" if work == "sleep" else work, only)))  # a part replaces no whole
    _draw(curves, {"slo_ms": slo_ms, "capacity": capacity, "work": work}, name)
    ours = [curve.kept for curve in curves if curve.name == "Forecastle"]
    return 1 if check and min(ours, default=1.0) < KEPT else 0


def _measured(subject: Subject, capacity: float, seconds: float, slo: float, work: str) -> table.Curve:
    """Sweep, find the sustainable rate to an eighth of the gap that it lies in, and ask for more than it."""
    points: list[load.Goodput] = []
    with running(subject, slo, work) as port:

        def point(rate: float) -> load.Goodput:
            times = list(load.arrivals(rate, RAMP + seconds, len(points)))
            outcomes = load.run(port, subject.request, subject.is_good, times)
            found = load.judge(times, outcomes, RAMP, RAMP + seconds, slo)
            calm = load.settled(port, subject.request, subject.is_good, slo)
            points.append(found)
            print(table.line(subject.name, found) + ("" if calm else "  (did not settle)"), flush=True)
            return found

        warm = list(load.arrivals(capacity, 2.0, 0))
        load.run(port, subject.request, subject.is_good, warm)  # what learns, learns
        load.settled(port, subject.request, subject.is_good, slo)
        for share in SHARES:
            point(share * capacity)
        for _ in range(STEPS):
            if gap := load.between(points):
                point(sum(gap) / 2)
        most = load.sustainable(points)
        rate = most.offered if most else 0.0
        twice = [point(2 * rate).good for _ in range(REPEATS)] if rate else []
        if rate:
            point(3 * rate)
    kept = statistics.median(twice) / rate if rate else 0.0
    return table.Curve(subject.name, rate, kept, sorted(points, key=lambda each: each.offered))


def _draw(curves: list[table.Curve], settings: dict[str, object], name: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    data, picture = RESULTS / f"{name}.json", RESULTS / f"{name}.png"
    data.write_text(json.dumps({**settings, "servers": [asdict(curve) for curve in curves]}, indent=1))
    plot = [peer("matplotlib==3.10.8"), str(Path(__file__).with_name("plot.py")), str(data), str(picture)]
    subprocess.run(plot, check=True)
    print(f"drawn in {picture}")


if __name__ == "__main__":
    sys.exit(app())
