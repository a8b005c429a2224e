"""For authors of plugins: a test client, a prediction through (de)serializers, and what is registered."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy
from werkzeug.test import Client, TestResponse

from forecastle.testing import Deserializer, ImplementsDeserialize, ImplementsSerialize, Serializer
from inference_server.app import MODEL_DIR, create_app
from inference_server.plugins import manager


def client() -> Client:
    """Return werkzeug's test client on the application."""
    return Client(create_app())


def post_invocations(*, model_dir: Path | None = None, **kwargs: Any) -> TestResponse:
    """POST to ``/invocations`` and return the response; ``kwargs`` are those of the client's ``post``.

    Raises:
        AssertionError: the response is not a 200; the message has its body.
    """
    overrides = dict(kwargs.pop("environ_overrides", None) or {})
    if model_dir is not None:
        overrides[MODEL_DIR] = str(model_dir)
    response = client().post("/invocations", environ_overrides=overrides, **kwargs)
    assert response.status_code == 200, f"{response.status}: {response.get_data(as_text=True)}"
    return response


def predict(
    data: Any,
    *,
    model_dir: Path | None = None,
    serializer: ImplementsSerialize | None = None,
    deserializer: ImplementsDeserialize | None = None,
) -> Any:
    """Make one invocation through (de)serializers like those of SageMaker's SDK; by default bytes pass as they are.

    Raises:
        AssertionError: the response is not a 200.
    """
    writing, reading = serializer or Serializer(), deserializer or Deserializer()
    headers = {"Content-Type": writing.CONTENT_TYPE, "Accept": ", ".join(reading.ACCEPT)}
    response = post_invocations(model_dir=model_dir, data=writing.serialize(data), headers=headers)
    return reading.deserialize(io.BytesIO(response.data), content_type=response.content_type or "")


def plugin_manager() -> pluggy.PluginManager:
    """Return the manager of the plugins, the default one among them."""
    return manager()


def plugin_is_registered(plugin: type | ModuleType) -> bool:
    """Say whether a plugin is found by its entry point, or was registered."""
    return manager().is_registered(plugin)


def hookimpl_is_valid(function: Callable[..., Any]) -> bool:
    """Say whether a function is a hook of a registered plugin."""
    caller = getattr(manager().hook, function.__name__, None)
    return caller is not None and function in (found.function for found in caller.get_hookimpls())
