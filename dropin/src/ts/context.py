"""What a handler is given, as TorchServe's package spells it."""

from __future__ import annotations

from forecastle.runtimes.handler.context import Context, RequestProcessor

__all__ = ("Context", "RequestProcessor")
