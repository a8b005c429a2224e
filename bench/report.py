"""From measured rows to a table, the ratios that matter, and a file."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

PACKAGES = ("forecastle", "uvicorn", "uvloop", "httptools", "msgspec", "onnxruntime", "numpy", "pillow")
ECHO_SHARE = 0.18
LIMIT_SHARE = 0.85


class Row(msgspec.Struct, frozen=True):
    """One measurement of one subject in one round; ``connections`` is 0 for what has none (the limits)."""

    subject: str
    workload: str
    connections: int
    rate: float
    p50: float = 0.0
    p99: float = 0.0
    lost: int = 0
    wrong: int = 0
    cpu_microseconds: float = 0.0
    cold_start: float = 0.0
    megabytes: float = 0.0


class Floor(msgspec.Struct, frozen=True):
    """A ratio of this run, and the least it may be."""

    what: str
    value: float
    least: float

    @property
    def holds(self) -> bool:
        """Whether it is not below its floor."""
        return self.value >= self.least


def medians(rows: list[Row]) -> list[Row]:
    """Return one row for each subject, workload and number of connections: medians, but faults added up."""
    groups: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.subject, row.workload, row.connections].append(row)
    merged = []
    for (subject, workload, connections), group in groups.items():
        values: dict[str, Any] = {
            name: statistics.median(getattr(row, name) for row in group)
            for name in ("rate", "p50", "p99", "cpu_microseconds", "cold_start", "megabytes")
        }
        faults = {name: sum(getattr(row, name) for row in group) for name in ("lost", "wrong")}
        merged.append(Row(subject, workload, connections, **values, **faults))
    return sorted(merged, key=lambda row: (row.workload, row.connections, -row.rate))


def floors(rows: list[Row]) -> list[Floor]:
    """Return the ratios that the measured subjects allow, each with its floor."""
    rates = {(row.subject, row.workload, row.connections): row.rate for row in rows}
    found = []
    ours, echo = rates.get(("forecastle", "W2", 64)), rates.get(("bare echo", "W2", 64))
    if ours and echo:
        found.append(Floor("W2 at 64 connections, as a share of the bare echo", ours / echo, ECHO_SHARE))
    ours, alone = rates.get(("forecastle", "W3", 16)), rates.get(("in-process, batch 1", "W3", 0))
    if ours and alone:
        found.append(Floor("W3 with two replicas, as a share of twice one process", ours / (2 * alone), LIMIT_SHARE))
    faults = sum(row.lost + row.wrong for row in rows)
    found.append(Floor("answers lost or wrong, subtracted from one", 1.0 - faults, 1.0))
    return found


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def save(folder: Path, rows: list[Row], found: list[Floor], settings: dict[str, Any]) -> Path:
    """Write everything as JSON, every round's rows included."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json"
    contents = {
        "machine": machine(),
        "settings": settings,
        "rows": msgspec.to_builtins(rows),
        "floors": [{"what": f.what, "value": f.value, "least": f.least, "holds": f.holds} for f in found],
    }
    path.write_text(json.dumps(contents, indent=1), "utf-8")
    return path


def table(rows: list[Row]) -> str:
    """Return the medians as a Markdown table."""
    head = [
        "workload",
        "connections",
        "subject",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "CPU µs/request",
        "cold start s",
        "MB",
    ]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        served = row.connections > 0
        lines.append(
            [
                row.workload,
                str(row.connections) if served else "",
                row.subject,
                f"{row.rate:,.0f}" if row.rate >= 1000 else f"{row.rate:.1f}",
                *([f"{row.p50:.2f}", f"{row.p99:.2f}", f"{row.cpu_microseconds:,.0f}"] if served else ["", "", ""]),
                *([f"{row.cold_start:.2f}", f"{row.megabytes:.0f}"] if served else ["", ""]),
            ]
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )
