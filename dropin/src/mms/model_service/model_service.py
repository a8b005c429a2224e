"""What a service is, as MMS's package spells it."""

from __future__ import annotations

from forecastle.runtimes.service.base import ModelService, MultiNodesService, SingleNodeService

__all__ = ("ModelService", "MultiNodesService", "SingleNodeService")
