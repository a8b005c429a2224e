"""``python -m bench``: measure Forecastle beside the limits of this machine, in one run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import limits, process, report, wrk
from bench.workloads import Workload, build

RESULTS = Path(__file__).with_name("results")
SUBJECTS: dict[str, Callable[[Workload, int], list[str]]] = {
    "forecastle": process.forecastle,
    "bare echo": lambda _, port: process.plain("echo", port),
    "raw ASGI": lambda _, port: process.plain("raw_asgi", port),
}
WARM_UP_SECONDS = 2
CHECK_SECONDS = 2

app = App(help="Measure what Forecastle serves per second, beside the limits of this machine.", version_flags=())


@app.default
def run(
    *,
    seconds: int = 5,
    rounds: int = 3,
    connections: Annotated[str, Parameter()] = "1,16,64",
    only: str = "W1,W2,W3",
    quick: bool = False,
    check: bool = False,
) -> int:
    """Measure, print a table, and write all rows as JSON below bench/results.

    Args:
        seconds: How long each load lasts.
        rounds: How often everything is measured; the table has medians, and every other round runs backwards.
        connections: The numbers of connections.
        only: The workloads.
        quick: One round of two seconds.
        check: Exit with 1 if a floor does not hold.
    """
    wrk.require()
    if quick:
        seconds, rounds = 2, 1
    counts = [int(count) for count in connections.split(",")]
    workloads = [workload for workload in build() if workload.name in only.split(",")]
    rows = list(_measured(workloads, counts, seconds, rounds))
    merged = report.medians(rows)
    found = report.floors(merged)
    print(report.table(merged))
    for floor in found:
        print(f"{'holds' if floor.holds else 'FAILS'}: {floor.what}: {floor.value:.2f} (floor {floor.least:g})")
    settings = {"seconds": seconds, "rounds": rounds, "connections": counts, "only": only}
    print(f"written to {report.save(RESULTS, rows, found, settings)}")
    return 1 if check and not all(floor.holds for floor in found) else 0


def _measured(workloads: list[Workload], counts: list[int], seconds: int, rounds: int) -> Iterator[report.Row]:
    """Measure every subject with every workload, round by round, so that a disturbance hits all of them alike."""
    tasks = list(product(workloads, [*SUBJECTS, "limits"]))
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=len(tasks) * rounds)
        for turn in range(rounds):
            for workload, subject in tasks if turn % 2 == 0 else reversed(tasks):
                progress.update(bar, description=f"round {turn + 1}: {workload.name} {subject}")
                if subject == "limits":
                    for size, rate in limits.measure(workload, min(seconds, 2)).items():
                        yield report.Row(f"in-process, batch {size}", workload.name, 0, rate)
                else:
                    yield from _served(subject, workload, counts, seconds)
                progress.advance(bar)


def _served(subject: str, workload: Workload, counts: list[int], seconds: int) -> Iterator[report.Row]:
    port = process.free_port()
    with process.running(SUBJECTS[subject](workload, port), port, workload) as server:
        megabytes = server.megabytes()
        wrk.load(server.url, workload, connections=16, seconds=WARM_UP_SECONDS)
        for count in counts:
            before = server.cpu_seconds()
            load = wrk.load(server.url, workload, connections=count, seconds=seconds)
            used = server.cpu_seconds() - before
            checked = wrk.load(server.url, workload, connections=count, seconds=CHECK_SECONDS, expected=server.answer)
            yield report.Row(
                subject,
                workload.name,
                count,
                load.rate,
                load.p50,
                load.p99,
                load.lost + checked.lost,
                checked.wrong,
                used / max(load.rate * seconds, 1) * 1e6,
                server.cold_start,
                megabytes,
            )


if __name__ == "__main__":
    sys.exit(app())
