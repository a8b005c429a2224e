"""Plugins that come and go, for the tests of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import inference_server
from inference_server import testing


@pytest.fixture
def plugin() -> Iterator[Any]:
    """Register functions as a plugin, and take it away again."""
    registered: list[type] = []

    def register(**functions: Any) -> Any:
        hooks = {}
        for name, function in functions.items():
            function.__name__ = name
            hooks[name] = staticmethod(inference_server.plugin_hook(function))
        found = type(f"Plugin{len(registered)}", (), hooks)
        testing.plugin_manager().register(found)
        registered.append(found)
        forget()
        return found

    forget()
    yield register
    for found in registered:
        testing.plugin_manager().unregister(found)
    forget()


def forget() -> None:
    """Forget the model; only one of the two keeps it for all plugins."""
    model = getattr(inference_server, "_model", None)
    if model is not None:
        model.cache_clear()
