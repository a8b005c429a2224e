"""The handler that names what is in a picture, as TorchServe's package spells it."""

from __future__ import annotations

from forecastle.runtimes.handler.vision import ImageClassifier

__all__ = ("ImageClassifier",)
