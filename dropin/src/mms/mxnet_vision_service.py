"""The service for pictures, as MMS's first manual spells it."""

from __future__ import annotations

from forecastle.runtimes.service.classes import MXNetVisionService

__all__ = ("MXNetVisionService",)
