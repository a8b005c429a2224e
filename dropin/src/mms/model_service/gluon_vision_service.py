"""The service for networks trained on normalised pictures."""

from __future__ import annotations

from forecastle.runtimes.service.classes import GluonVisionService

__all__ = ("GluonVisionService",)
