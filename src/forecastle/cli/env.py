"""``forecastle env``: the environments that models' requirements were installed in."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from forecastle.cli import sources, table, values
from forecastle.cluster.environments.cache import Environment, environments, remove
from forecastle.cluster.specs import default_cache_dir

HEADINGS = ("environment", "python", "size", "used", "requirements")
_DAY = 86400.0
_SHOWN = 60

_Age = Annotated[float, Parameter(converter=sources.reads(values.delay), show_default=lambda age: f"{age / 3600:g}h")]

app = App(name="env", help="List and remove the environments that models' requirements were installed in.")


@app.command(name="list")
def list_(*, cache_dir: Path | None = None) -> int:
    """List the environments, the most recently used first.

    Args:
        cache_dir: Where they are kept (default: ~/.cache/forecastle).
    """
    found = environments(_cache(cache_dir))
    if not found:
        sys.stdout.write(f"no environment has been made yet under {_cache(cache_dir)}\n")
        return 0
    table.draw(HEADINGS, [_row(environment, time.time()) for environment in found], sys.stdout)
    return 0


@app.command
def prune(*, unused_for: _Age = 30 * _DAY, cache_dir: Path | None = None) -> int:
    """Remove the environments that were not used for some time; those that a server uses stay.

    Args:
        unused_for: How long an environment must have been unused: 720h, 0 for all of them.
        cache_dir: Where they are kept (default: ~/.cache/forecastle).
    """
    now = time.time()
    old = [environment for environment in environments(_cache(cache_dir)) if now - environment.used >= unused_for]
    removed = [environment for environment in old if remove(environment)]
    size = _megabytes(sum(environment.size for environment in removed))
    in_use = len(old) - len(removed)
    sys.stdout.write(f"removed {len(removed)}, {size}" + (f"; {in_use} in use" if in_use else "") + "\n")
    return 0


def _row(environment: Environment, now: float) -> tuple[str, ...]:
    wanted = ", ".join(environment.requirements)
    return (
        environment.path.name[:12],
        environment.python,
        _megabytes(environment.size),
        "now" if environment.in_use else f"{(now - environment.used) / 3600:.0f} h ago",
        wanted if len(wanted) <= _SHOWN else f"{wanted[:_SHOWN]}…",
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _cache(given: Path | None) -> Path:
    return default_cache_dir() if given is None else given.expanduser()
