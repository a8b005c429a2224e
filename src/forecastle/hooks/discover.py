"""Finding a user's hooks: in installed plugins, in an importable module, in a file.

Marked functions and plain functions with the hooks' names count alike. A marked function is called by argument name, as
pluggy does, and may take fewer arguments than the hook has. A plain one is called by position, since such functions are
written with names of their own (``input_fn(request_body, request_content_type)``).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pluggy

from forecastle.errors import LoadFailed
from forecastle.hooks.spec import HOOKS, PROJECT, Specification, arguments, plugin_hook
from forecastle.hooks.streaming import yields
from forecastle.hooks.toolkit import Context, adapted

ENTRY_POINTS = PROJECT
"""The entry-point group under which installed packages offer their hooks."""


def new_manager() -> pluggy.PluginManager:
    """Return a plugin manager that knows the hooks and holds no plugin."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Specification)
    return manager


def from_entry_points() -> pluggy.PluginManager:
    """Collect the hooks of every installed plugin; different packages may offer different hooks.

    Raises:
        LoadFailed: no plugin is installed, or one cannot be imported or offers no hook.
    """
    found = list(importlib.metadata.entry_points(group=ENTRY_POINTS))
    if not found:
        raise LoadFailed(f"no installed package offers hooks in the entry-point group {ENTRY_POINTS!r}")
    manager = new_manager()
    for entry in found:
        _register(manager, entry.load(), f"the plugin {entry.name!r} ({entry.value})")
    return manager


def from_module(name: str) -> pluggy.PluginManager:
    """Collect the hooks of an importable module."""
    return _only(importlib.import_module(name), f"the module {name!r}")


def from_plugin(plugin: object, where: str) -> pluggy.PluginManager:
    """Collect the hooks of a module or class that was imported already; ``where`` names it in messages."""
    return _only(plugin, where)


def from_file(path: Path, context: Context | None = None) -> pluggy.PluginManager:
    """Collect the hooks of a Python file; modules that lie beside it can be imported by it.

    With a ``context``, plain functions are taken for hooks in the manner of SageMaker's toolkit.

    Raises:
        LoadFailed: the file offers no hook, or a hook has the wrong arguments.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LoadFailed(f"{path.name} is not a Python file")
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return _only(module, path.name, context)


def _only(module: object, where: str, context: Context | None = None) -> pluggy.PluginManager:
    manager = new_manager()
    _register(manager, module, where, context)
    return manager


def _register(manager: pluggy.PluginManager, plugin: object, where: str, context: Context | None = None) -> None:
    hooks = _hooks_of(plugin, where, context)
    if not hooks:
        raise LoadFailed(f"{where} defines no hook; expected at least one of {', '.join(HOOKS)}")
    try:
        manager.register(SimpleNamespace(**hooks), name=where)
    except pluggy.PluginValidationError as error:
        raise LoadFailed(f"{where}: {' '.join(str(error).split())}") from error


def _hooks_of(plugin: object, where: str, context: Context | None) -> dict[str, Callable[..., Any]]:
    marker = f"{PROJECT}_impl"
    hooks: dict[str, Callable[..., Any]] = {}
    for name in dir(plugin):
        value = getattr(plugin, name, None)
        if hasattr(value, marker) and inspect.isroutine(value):
            hooks[name] = value
        elif name in HOOKS and inspect.isroutine(value):
            hooks[name] = _by_position(name, value if context is None else adapted(name, value, context), where)
    return hooks


def _by_position(name: str, function: Callable[..., Any], where: str) -> Callable[..., Any]:
    """Give a plain function the hook's argument names, so that pluggy can call it."""
    wanted = arguments(name)
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    if len(required) > len(wanted):
        names = ", ".join(p.name for p in required)
        raise LoadFailed(f"{where}: {name} takes ({names}), but the hook is called with ({', '.join(wanted)})")
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return _renamed(function, wanted if variadic else wanted[: len(positional)])


def _renamed(function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    listed = ", ".join(names)
    # pluggy reads the names of a function's arguments from its code, so the wrapper is compiled with the hook's own.
    wrapper = eval(f"lambda {listed}: function({listed})", {"function": function})  # noqa: S307
    wrapper.yields = yields(function)
    return plugin_hook(cast("Callable[..., Any]", wrapper))
