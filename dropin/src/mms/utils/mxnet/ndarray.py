"""Outputs, as services handle them."""

from __future__ import annotations

from forecastle.runtimes.service.ndarray import top_probability

__all__ = ("top_probability",)
