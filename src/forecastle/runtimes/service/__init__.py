"""MMS's service classes: a user's own way from a request to the model's inputs, and from its outputs to an answer."""

from __future__ import annotations

import msgspec

from forecastle.models.artifact import Artifact
from forecastle.runtimes.service.classes import MXNetBaseService, MXNetVisionService
from forecastle.runtimes.service.find import find_class
from forecastle.runtimes.service.runtime import ServiceRuntime
from forecastle.runtimes.table import open_runtime

_AS_THE_RUNTIME = (MXNetBaseService, MXNetVisionService)
"""These do what the model's runtime does by itself, and that one predicts together the requests that wait together."""


def open(artifact: Artifact) -> object:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of an artifact with a service.

    Raises:
        LoadFailed: the service has no class or several, or imports what is not there.
    """
    service_class = find_class(artifact.service)
    if service_class in _AS_THE_RUNTIME:
        return open_runtime(msgspec.structs.replace(artifact, service=""))
    return ServiceRuntime(service_class, artifact)
