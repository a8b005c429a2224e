"""Services over a network, as MMS's first manual spells them."""

from __future__ import annotations

from forecastle.runtimes.service.classes import MXNetBaseService, check_input_shape

__all__ = ("MXNetBaseService", "check_input_shape")
