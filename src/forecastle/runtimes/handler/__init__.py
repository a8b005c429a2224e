"""Handlers, the code of MMS 1.x's and TorchServe's archives: ``handle(data, context)``, a batch in and a list out."""

from __future__ import annotations

from forecastle.models.artifact import Artifact
from forecastle.runtimes.handler.runtime import HandlerRuntime


def open(artifact: Artifact) -> object:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of an artifact whose ``service`` is a handler."""
    return HandlerRuntime(artifact)
