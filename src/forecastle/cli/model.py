"""``forecastle model``: registered models of a running server."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from forecastle.cli import artifacts, sources, table, values
from forecastle.client.control import SERVER, Control
from forecastle.cluster.desired import settled
from forecastle.cluster.specs import ModelSpec, parse_model

HEADINGS = ("model", "version", "", "state", "replicas", "type", "source")

_Replicas = Annotated[int, Parameter(converter=sources.reads(values.whole))]
_BatchSize = Annotated[int | None, Parameter(converter=sources.reads(values.batch_size))]
_Delay = Annotated[float | None, Parameter(converter=sources.reads(values.delay))]
_Duration = Annotated[float | None, Parameter(converter=sources.reads(values.duration))]

app = App(name="model", help="Deploy, list, scale and roll the models of a running server.")


@app.command
def deploy(
    model: str,
    *,
    version: str = "1",
    type: str = "",  # noqa: A002 -- the option's name
    replicas: _Replicas = 1,
    batch_size: _BatchSize = None,
    batch_delay: _Delay = None,
    timeout: _Duration = None,
    start_timeout: _Duration = None,
    requirements: Path | None = None,
    label: list[str] | None = None,
    use: Annotated[bool, Parameter(negative="--no-use")] = True,
    server: str = SERVER,
) -> int:
    """Load a version of a model, and let its name mean it once it is ready; the server finds it again after a restart.

    Args:
        model: NAME=SOURCE, with any SOURCE that forecastle serve takes.
        version: What this version is called.
        type: What it takes, as an application's type; applications of another type then cannot link to it.
        replicas: How many processes.
        batch_size: The most requests that are predicted together; -1 for as many as pay and are in time.
        batch_delay: How long a free replica waits for a batch to fill.
        timeout: The longest a prediction may take.
        start_timeout: How long a replica may take to load the model.
        requirements: A requirements.txt to install for it, in an environment of its own.
        label: A label; may be repeated.
        use: Make it the current version; --no-use leaves that as it is.
        server: The management address of the server.
    """
    name, source = parse_model(model)
    spec = settled(ModelSpec(name, source))
    asked: dict[str, Any] = {
        "name": name,
        "source": spec.source,
        "version": version,
        "input_type": type,
        "replicas": replicas,
        "batch_size": batch_size,
        "batch_delay": batch_delay,
        "timeout": timeout,
        "start_timeout": start_timeout,
        "requirements": None if requirements is None else [f"-r {requirements.absolute()}"],
        "labels": label or [],
        "current": use,
    }
    with artifacts.waiting(f"loading {name} version {version}"):
        Control(server).deploy({key: value for key, value in asked.items() if value is not None})
    sys.stdout.write(f"deployed {name} version {version}\n")
    return 0


@app.command(name="list")
def list_(*, json: bool = False, server: str = SERVER) -> int:
    """List every version of every model that is served or registered.

    Args:
        json: Print JSON.
        server: The management address of the server.
    """
    return show_models(Control(server).status()["models"], json=json)


@app.command
def scale(name: str, replicas: _Replicas, *, version: str | None = None, server: str = SERVER) -> int:
    """Change how many replicas a version has; they are there when this returns.

    Args:
        name: The model.
        replicas: How many.
        version: The version (default: the current one).
        server: The management address of the server.
    """
    with artifacts.waiting(f"scaling {name}"):
        found = Control(server).change(name, {"version": version, "replicas": replicas, "use": False})
    sys.stdout.write(f"{name} version {found['version']} has {replicas} replica{'' if replicas == 1 else 's'}\n")
    return 0


@app.command
def use(name: str, version: str, *, server: str = SERVER) -> int:
    """Let a model's name mean another version of it: roll forward, or back.

    Args:
        name: The model.
        version: A version that is registered.
        server: The management address of the server.
    """
    Control(server).change(name, {"version": version})
    sys.stdout.write(f"{name} is version {version}\n")
    return 0


@app.command
def delete(name: str, *, version: str | None = None, server: str = SERVER) -> int:
    """Take a version away, or all of a model; what it was asked before is still answered.

    Args:
        name: The model.
        version: The version (default: all of them).
        server: The management address of the server.
    """
    Control(server).remove(name, version)
    sys.stdout.write(f"deleted {name}{'' if version is None else f' version {version}'}\n")
    return 0


def show_models(found: list[dict[str, Any]], *, json: bool) -> int:
    """Print models, as a table or as JSON."""
    if json:
        sys.stdout.write(json_.dumps(found, indent=2) + "\n")
    elif found:
        table.draw(HEADINGS, [_row(each) for each in found], sys.stdout)
    else:
        sys.stdout.write("no model is served or registered\n")
    return 0


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    ready = sum(replica["state"] == "ready" for replica in found["replicas"])
    reason = f": {found['reason'].splitlines()[0]}" if found["reason"] else ""
    return (
        found["name"],
        found["version"],
        "current" if found["current"] else "",
        f"{found['state']}{reason}",
        f"{ready}/{len(found['replicas'])}",
        found["input_type"] or "any",
        found["source"] or ("command line" if not found["registered"] else "-"),
    )
