"""What a handler of PyTorch's builds on, as TorchServe's package spells it."""

from __future__ import annotations

from forecastle.runtimes.handler.torch import BaseHandler

__all__ = ("BaseHandler",)
