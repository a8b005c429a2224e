"""What a handler is given, as MMS 1.x's package spells it."""

from __future__ import annotations

from forecastle.runtimes.handler.context import Context, RequestProcessor

__all__ = ("Context", "RequestProcessor")
