"""What was found, as text: each point as it is measured, and all of them as ratios to what a server sustains."""

from __future__ import annotations

from dataclasses import dataclass

from bench.overload.load import Goodput

HEADS = ("offered/s", "in time/s", "share", "p99 ms", "default/s", "503/s", "failed/s", "other p50", "p99 ms", "lag ms")
HEAD = f"{'server':10} " + " ".join(f"{head:>9}" for head in HEADS)


@dataclass(frozen=True)
class Curve:
    """A server's points by offered load, its sustainable rate, and what share of that it answers at twice the rate."""

    name: str
    sustainable: float
    kept: float
    points: list[Goodput]


def line(name: str, found: Goodput) -> str:
    """Return one point."""
    rates = (found.defaults, found.refused, found.failed)
    cells = [f"{found.offered:.0f}", f"{found.good:.0f}", f"{found.in_time:.1%}", _cell(found.p99)]
    cells += [*(f"{rate:.0f}" for rate in rates), _cell(found.p50_other), _cell(found.p99_other), _cell(found.lag)]
    return f"{name:10} " + " ".join(f"{cell:>9}" for cell in cells)


def ratios(curves: list[Curve]) -> str:
    """Return a Markdown table of goodput against offered load, both as ratios to each server's sustainable rate."""
    lines = ["| server | offered | in time | offered/s | in time/s |", "|---|---|---|---|---|"]
    for curve in curves:
        for each in curve.points if curve.sustainable else []:
            offered, good = each.offered / curve.sustainable, each.good / curve.sustainable
            rates = f"{each.offered:.0f} | {each.good:.0f}"
            lines.append(f"| {curve.name} | {offered:.2f} | {good:.2f} | {rates} |")
    told = [
        f"{curve.name} sustains {curve.sustainable:.0f}/s; "
        f"asked for twice that, it answers {curve.kept:.0%} of it in time"
        for curve in curves
    ]
    return "\n".join([*lines, "", *told])


def _cell(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.1f}"
