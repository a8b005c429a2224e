"""What a handler raises, as MMS 1.x's package spells it."""

from __future__ import annotations

from forecastle.runtimes.handler.faults import PredictionException

__all__ = ("PredictionException",)
