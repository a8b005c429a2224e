"""What the server says on stdout once it is ready: a table of the models, and where to reach them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table

from forecastle.serving.router import ModelInfo

HEADINGS = ("model", "version", "runtime", "replicas", "state", "endpoints")
_WILDCARDS = {"", "0.0.0.0", "::"}  # noqa: S104 -- shown, not bound


def url(host: str, port: int) -> str:
    """The address to type on this machine; a server that listens on every address is shown on the loopback one."""
    if host in _WILDCARDS:
        host = "[::1]" if host == "::" else "127.0.0.1"
    elif ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


def rows(models: Sequence[ModelInfo]) -> list[tuple[str, ...]]:
    """One row for each model, as texts; the endpoints are paths, so that the table fits a narrow terminal."""
    return [
        (
            model.name,
            model.version,
            model.runtime or "-",
            str(len(model.replicas)),
            _states(model),
            f"/{model.name}/predict" + (" /invocations" if len(models) == 1 else ""),
        )
        for model in models
    ]


def show(models: Sequence[ModelInfo], inference: str, management: str, out: TextIO) -> None:
    """Print the table, and below it the ports' URLs."""
    draw(HEADINGS, rows(models), out)
    out.write(f"ready on {inference}, management on {management}\n")
    out.flush()


def draw(headings: Sequence[str], body: Iterable[Sequence[str]], out: TextIO) -> None:
    """Print a table, drawn on a terminal and as plain aligned columns elsewhere."""
    if out.isatty():
        table = Table(*headings)
        for row in body:
            table.add_row(*row)
        Console(file=out).print(table)
    else:
        out.writelines(f"{line}\n" for line in _aligned([headings, *body]))


def _states(model: ModelInfo) -> str:
    counts = Counter(replica.state for replica in model.replicas)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    lines = list(lines)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
