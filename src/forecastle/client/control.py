"""The control API from the outside: what ``forecastle app``, ``model``, ``status`` and ``top`` ask a running server."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from forecastle.errors import RequestRefused, ServerNotFound

SERVER = "http://127.0.0.1:8081"
"""Where a server's management port is, unless it was told otherwise."""

PATIENCE = 10.0
"""How long in seconds a call may take that loads no model."""

LOADING = 660.0
"""How long a call may take that loads one; the server has its own limits, and tells of them before that."""


class Control:
    """Calls one server's control API. Values are those of its JSON.

    Every call raises ``ServerNotFound`` where nothing answers, and ``RequestRefused`` with the server's own sentence
    where it refuses; and every call ends, if need be after ``LOADING`` seconds.
    """

    def __init__(self, server: str = SERVER) -> None:
        self._server = server.rstrip("/")

    def status(self) -> Any:
        """Return the state and counters of all that is served."""
        return self._call("GET", "/v1/status")

    def applications(self) -> Any:
        """Return every application."""
        return self._call("GET", "/v1/applications")

    def application(self, name: str) -> Any:
        """Return one application."""
        return self._call("GET", f"/v1/applications/{quote(name, '')}")

    def register(self, application: dict[str, Any]) -> Any:
        """Register an application, and return it."""
        return self._call("POST", "/v1/applications", application)

    def unregister(self, name: str) -> None:
        """Take an application away."""
        self._call("DELETE", f"/v1/applications/{quote(name, '')}")

    def link(self, name: str, model: str) -> Any:
        """Link an application to a model, and return the application."""
        return self._call("PUT", f"/v1/applications/{quote(name, '')}/models/{quote(model, '')}")

    def unlink(self, name: str, model: str) -> Any:
        """Take a link away, and return the application."""
        return self._call("DELETE", f"/v1/applications/{quote(name, '')}/models/{quote(model, '')}")

    def purge(self, name: str) -> Any:
        """Empty an application's cache."""
        return self._call("POST", f"/v1/applications/{quote(name, '')}/purge")

    def models(self) -> Any:
        """Return every registered version of every model."""
        return self._call("GET", "/v1/models")

    def deploy(self, model: dict[str, Any]) -> Any:
        """Load and register a version, and return it; its replicas are ready then."""
        return self._call("POST", "/v1/models", model, LOADING)

    def change(self, name: str, change: dict[str, Any]) -> Any:
        """Change a model's current version, or a version's number of replicas; they are there when this returns."""
        return self._call("PATCH", f"/v1/models/{quote(name, '')}", change, LOADING)

    def remove(self, name: str, version: str | None = None) -> None:
        """Take a version away, or all of a model."""
        query = "" if version is None else f"?version={quote(version, '')}"
        self._call("DELETE", f"/v1/models/{quote(name, '')}{query}", None, LOADING)

    def _call(self, method: str, path: str, body: object = None, patience: float = PATIENCE) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        try:
            request = urllib.request.Request(f"{self._server}{path}", data, headers, method=method)  # noqa: S310 -- the user's own server
            with urllib.request.urlopen(request, timeout=patience) as reply:  # noqa: S310
                text = reply.read()
        except urllib.error.HTTPError as error:
            raise RequestRefused(_message(error)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            text = f"no server answers on {self._server}: {reason}; name its management address with --server"
            raise ServerNotFound(text) from None
        return json.loads(text) if text else None


def _message(error: urllib.error.HTTPError) -> str:
    text = error.read()
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {error.code}: {text[:200].decode(errors='replace')}"
