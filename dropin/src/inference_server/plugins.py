"""The plugins, and the model that their hooks make, in this process."""

from __future__ import annotations

import threading
from functools import lru_cache

import pluggy

from forecastle.hooks.discover import ENTRY_POINTS, new_manager
from forecastle.hooks.resolve import Hooks, load
from forecastle.models import platform
from inference_server import default_plugin

_loading = threading.Lock()


@lru_cache(maxsize=1)
def manager() -> pluggy.PluginManager:
    """Return the manager of the installed plugins and of the default one; a test may register others with it."""
    found = new_manager()
    found.register(default_plugin)
    found.load_setuptools_entrypoints(ENTRY_POINTS)
    return found


class Loaded:
    """A model that was loaded; ``lock`` is held while its hooks run, which are never called two at a time."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.lock = threading.Lock()


_models: dict[tuple[str, tuple[object, ...]], Loaded] = {}
"""By directory and plugins, since a test may register another one."""


def loaded(model_dir: str | None = None) -> Loaded:
    """Return the model of these plugins in this directory; it is loaded once, however many threads ask.

    Raises:
        LoadFailed: the hooks contradict each other. What ``model_fn`` raises passes through.
    """
    directory = str(platform.model_dir()) if model_dir is None else model_dir
    plugins = tuple(plugin for _, plugin in manager().list_name_plugin() if plugin not in (None, default_plugin))
    with _loading:
        if (directory, plugins) not in _models:
            users = new_manager()
            for plugin in plugins:
                users.register(plugin)
            _models[directory, plugins] = Loaded(load(users, None, directory, fallback=default_plugin))
        return _models[directory, plugins]
