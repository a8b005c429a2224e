"""``forecastle app``: applications of a running server."""

from __future__ import annotations

import json as json_
import sys
from typing import Annotated, Any

from cyclopts import App, Parameter

from forecastle.cli import sources, table, values
from forecastle.client.control import SERVER, Control

HEADINGS = ("application", "type", "objective", "default", "models", "policy")

_Objective = Annotated[float, Parameter(converter=sources.reads(values.duration), show_default="{:g}s".format)]
_Size = Annotated[int | None, Parameter(converter=sources.reads(values.room))]
_Age = Annotated[float, Parameter(converter=sources.reads(values.delay), show_default="{:g}s".format)]
_Options = Annotated[list[values.Option], Parameter(converter=sources.reads_all(values.policy_options), n_tokens=1)]

app = App(name="app", help="Register, list and link the applications of a running server.")


@app.command
def register(
    name: str,
    *,
    type: str = "json",  # noqa: A002 -- the option's name
    default: str = "null",
    slo: _Objective = 1.0,
    link: list[str] | None = None,
    policy: str = "current",
    policy_option: _Options | None = None,
    cache: _Size = None,
    cache_for: _Age = 0.0,
    server: str = SERVER,
) -> int:
    """Register an application: an endpoint with a latency objective, which answers a default when no model does.

    Args:
        name: What it is called; it answers POST /NAME/predict.
        type: What it takes: integers, floats, doubles, bytes, strings or json.
        default: What it answers when no model does; JSON, or any other text.
        slo: How long an answer may take: 100ms, 3s.
        link: A model that it asks; may be repeated.
        policy: How it chooses among several: current, weighted, shadow, epsilon_greedy, exp3, exp4 or ensemble.
        policy_option: An option of the policy, as NAME=VALUE; may be repeated.
        cache: How much it keeps of what was answered: 32MiB, 0 for nothing.
        cache_for: How long it keeps it; 0 for as long as there is room.
        server: The management address of the server.
    """
    application: dict[str, Any] = {
        "name": name,
        "input_type": type,
        "default_output": default,
        "slo_micros": round(slo * 1e6),
        "models": link or [],
        "policy": policy,
        "policy_options": dict(policy_option or ()),
        "cache_seconds": cache_for,
    }
    if cache is not None:
        application["cache_bytes"] = cache
    Control(server).register(application)
    sys.stdout.write(f"registered {name}: POST /{name}/predict\n")
    return 0


@app.command(name="list")
def list_(*, json: bool = False, server: str = SERVER) -> int:
    """List the applications.

    Args:
        json: Print JSON.
        server: The management address of the server.
    """
    return _show(Control(server).applications(), json=json)


@app.command
def show(name: str, *, json: bool = False, server: str = SERVER) -> int:
    """Describe one application.

    Args:
        name: The application.
        json: Print JSON.
        server: The management address of the server.
    """
    found = Control(server).application(name)
    if json:
        return _show(found, json=True)
    return _show([found], json=False)


@app.command
def link(name: str, *models: str, server: str = SERVER) -> int:
    """Link an application to models.

    Args:
        name: The application.
        models: The models that it is to ask.
        server: The management address of the server.
    """
    for model in models:
        Control(server).link(name, model)
        sys.stdout.write(f"{name} asks {model}\n")
    return 0


@app.command
def unlink(name: str, *models: str, server: str = SERVER) -> int:
    """Take links of an application away.

    Args:
        name: The application.
        models: The models that it is no more to ask.
        server: The management address of the server.
    """
    for model in models:
        Control(server).unlink(name, model)
        sys.stdout.write(f"{name} does not ask {model} any more\n")
    return 0


@app.command
def purge(name: str, *, server: str = SERVER) -> int:
    """Empty an application's cache.

    Args:
        name: The application.
        server: The management address of the server.
    """
    count = Control(server).purge(name)["purged"]
    sys.stdout.write(f"{name} has forgotten {count} answer{'' if count == 1 else 's'}\n")
    return 0


@app.command
def delete(name: str, *, server: str = SERVER) -> int:
    """Take an application away; what it was asked before is still answered.

    Args:
        name: The application.
        server: The management address of the server.
    """
    Control(server).unregister(name)
    sys.stdout.write(f"deleted {name}\n")
    return 0


def _show(found: Any, *, json: bool) -> int:
    if json:
        sys.stdout.write(json_.dumps(found, indent=2) + "\n")
    elif found:
        table.draw(HEADINGS, [_row(each) for each in found], sys.stdout)
    else:
        sys.stdout.write("no application is registered\n")
    return 0


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    return (
        found["name"],
        found["input_type"],
        f"{found['slo_micros'] / 1000:g} ms",
        found["default_output"],
        ", ".join(found.get("models", ())) or "-",
        found.get("policy", "current"),
    )
