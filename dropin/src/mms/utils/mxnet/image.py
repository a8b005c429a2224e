"""Pictures, as services handle them."""

from __future__ import annotations

from forecastle.runtimes.service.image import color_normalize, fixed_crop, read, resize, transform_shape, write

__all__ = ("color_normalize", "fixed_crop", "read", "resize", "transform_shape", "write")
