"""The functions for services, as MMS's package spells them."""

from __future__ import annotations

from forecastle.runtimes.service import image, ndarray, nlp

__all__ = ("image", "ndarray", "nlp")
