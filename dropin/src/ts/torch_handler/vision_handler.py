"""What a handler of pictures builds on, as TorchServe's package spells it."""

from __future__ import annotations

from forecastle.runtimes.handler.vision import VisionHandler

__all__ = ("VisionHandler",)
