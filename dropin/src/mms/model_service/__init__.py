"""What a service is, in both spellings: a module of MMS's first version, a package of the later ones."""

from __future__ import annotations

from forecastle.runtimes.service.base import ModelService, MultiNodesService, SingleNodeService

__all__ = ("ModelService", "MultiNodesService", "SingleNodeService")
