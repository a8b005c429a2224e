"""``forecastle status`` and ``forecastle top``: what a running server does."""

from __future__ import annotations

import json as json_
import sys
import time
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from forecastle.cli import model, sources, table, values
from forecastle.client.control import SERVER, Control

APPLICATIONS = ("application", "queries", "answered", "defaults", "waiting", "mean", "cache hits")
MODELS = ("model", "version", "replicas", "waiting", "running", "requests/s", "batch", "busy")

_Every = Annotated[float, Parameter(converter=sources.reads(values.duration), show_default="{:g}s".format)]


def status(*, json: bool = False, server: str = SERVER) -> int:
    """Say what a running server serves, and what is wrong; the exit code is 1 where it is not ready.

    Args:
        json: Print JSON.
        server: The management address of the server.
    """
    found = Control(server).status()
    if json:
        sys.stdout.write(json_.dumps(found, indent=2) + "\n")
        return 0 if found["ready"] else 1
    sys.stdout.write("ready\n" if found["ready"] else "not ready\n")
    sys.stdout.writelines(f"  {trouble}\n" for trouble in found["troubles"])
    model.show_models(found["models"], json=False)
    if found["applications"]:
        table.draw(APPLICATIONS, [_application(each) for each in found["applications"]], sys.stdout)
    return 0 if found["ready"] else 1


def top(*, every: _Every = 1.0, rounds: int = 0, server: str = SERVER) -> int:
    """Show what a running server does, again and again, until Ctrl-C.

    Args:
        every: How often.
        rounds: How many times; 0 for until Ctrl-C.
        server: The management address of the server.
    """
    control = Control(server)
    before, at = control.status(), time.monotonic()
    console = Console(file=sys.stdout)
    try:
        with Live(console=console, auto_refresh=False, transient=False) as live:
            shown = 0
            while not rounds or shown < rounds:
                time.sleep(every)
                now, then = control.status(), time.monotonic()
                live.update(_screen(before, now, then - at), refresh=True)
                before, at, shown = now, then, shown + 1
    except KeyboardInterrupt:
        return 0
    return 0


def _screen(before: dict[str, Any], now: dict[str, Any], seconds: float) -> Group:
    known = {(each["name"], each["version"]): each for each in before["models"]}
    models = Table(*MODELS)
    for each in now["models"]:
        models.add_row(*_rates(known.get((each["name"], each["version"]), each), each, seconds))
    parts: list[Any] = [Text("; ".join(now["troubles"]) or "ready"), models]
    if now["applications"]:
        applications = Table(*APPLICATIONS)
        for each in now["applications"]:
            applications.add_row(*_application(each))
        parts.append(applications)
    return Group(*parts)


def _rates(before: dict[str, Any], now: dict[str, Any], seconds: float) -> tuple[str, ...]:
    answered = now["answered"] - before["answered"]
    batches = now["batches"] - before["batches"]
    busy = now["predict_seconds"] - before["predict_seconds"]
    ready = sum(replica["state"] == "ready" for replica in now["replicas"])
    return (
        now["name"],
        now["version"] + (" *" if now["current"] else ""),
        f"{ready}/{len(now['replicas'])}",
        str(now["waiting"]),
        str(now["running"]),
        f"{answered / seconds:.1f}",
        f"{answered / batches:.1f}" if batches else "-",
        f"{100 * busy / (seconds * ready):.0f} %" if ready else "-",
    )


def _application(found: dict[str, Any]) -> tuple[str, ...]:
    over = found["answered"] + sum(found["defaults"].values())
    causes = ", ".join(f"{count} {cause}" for cause, count in found["defaults"].items() if count)
    looked = found["cache_hits"] + found["cache_misses"]
    return (
        found["name"],
        str(found["queries"]),
        str(found["answered"]),
        causes or "0",
        str(found["waiting"]),
        f"{1000 * found['seconds'] / over:.1f} ms" if over else "-",
        f"{100 * found['cache_hits'] / looked:.0f} %" if looked else "-",
    )
