"""From a picture's bytes to the tensor that an image model takes.

The picture becomes 8-bit RGB (or grey, for one channel), upright as its EXIF orientation says, laid over white where it
is transparent, and stretched to the model's height and width without a crop. Shrinking averages the pixels that fall
together (area interpolation, as MMS did); enlarging is bilinear. Values stay 0 to 255: nothing is normalised.
"""

from __future__ import annotations

import io
import struct
import warnings
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError
from PIL.Image import Resampling, Transpose

from forecastle.errors import BadInput

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
"""What is decoded. Of an animation, the first frame."""

MAX_PIXELS = 64 * 1024 * 1024
"""A picture of more pixels is refused before it is decoded, whatever its file's size."""

_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM")
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}

# What Pillow's decoders raise at bytes that lie.
_FAULTS = (
    *(OSError, ValueError, SyntaxError, EOFError, LookupError, ArithmeticError, TypeError, AttributeError),
    *(struct.error, RuntimeError, MemoryError, AssertionError),
)


def is_picture(data: bytes) -> bool:
    """Say whether the bytes begin like one of ``FORMATS``."""
    return data.startswith(_MAGIC) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def decode_image(
    data: bytes, height: int | None, width: int | None, channels: int = 3, dtype: str = "float32"
) -> np.ndarray[Any, Any]:
    """Decode a picture to an array of shape (channels, height, width), values 0 to 255.

    ``channels`` is 3 (red, green, blue) or 1 (grey). A ``height`` or ``width`` of ``None`` is the picture's own.

    Raises:
        BadInput: the bytes are no picture of ``FORMATS``, a broken one, or one of more than ``MAX_PIXELS`` pixels.
    """
    with warnings.catch_warnings():
        # Pillow warns of odd metadata and of large pictures; the one is harmless, the other has a limit below.
        warnings.simplefilter("ignore")
        picture = _picture(data, height, width, "RGB" if channels == 3 else "L")
    array = np.asarray(picture)
    array = array[None] if channels == 1 else array.transpose(2, 0, 1)
    return np.ascontiguousarray(array, dtype=dtype)


def _picture(data: bytes, height: int | None, width: int | None, mode: str) -> Image.Image:
    try:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
        _check_size(*picture.size)
        turn = _UPRIGHT.get(_orientation(picture))
        turned = turn is not None and turn >= Transpose.ROTATE_90 and turn != Transpose.ROTATE_180
        own = picture.size[::-1] if turned else picture.size
        size = (width or own[0], height or own[1])
        stored = size[::-1] if turned else size
        # A JPEG much larger than needed is decoded at a half, a quarter or an eighth: its decoder averages, as we do.
        # What is left is at least twice the size wanted, so the last averaging is ours.
        picture.draft(None, (2 * stored[0], 2 * stored[1]))
        flat = _flat(picture, mode)
    except Image.DecompressionBombError:
        raise BadInput(f"the picture has too many pixels; the limit is {MAX_PIXELS}") from None
    except UnidentifiedImageError:
        raise BadInput(f"the picture cannot be read; expected one of {', '.join(FORMATS)}") from None
    except _FAULTS as error:
        reason = str(error).split("\n", 1)[0] or type(error).__name__
        raise BadInput(f"the picture is broken: {reason}") from None
    if flat.size != stored:
        shrinks = stored[0] <= flat.width and stored[1] <= flat.height
        flat = flat.resize(stored, Resampling.BOX if shrinks else Resampling.BILINEAR)
    return flat if turn is None else flat.transpose(turn)


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise BadInput(f"the picture is {width} x {height} pixels; the limit is {MAX_PIXELS} pixels in all")


def _orientation(picture: Image.Image) -> int:
    try:
        return int(picture.getexif().get(_ORIENTATION, 1))
    except _FAULTS:
        return 1  # broken metadata does not spoil a picture


def _flat(picture: Image.Image, mode: str) -> Image.Image:
    """Decode to 8-bit ``mode``, without transparency."""
    picture.load()
    if picture.mode.startswith("I"):
        # Pillow would clip 16-bit grey at 255.
        deep = np.asarray(picture).astype(np.uint32) >> 8
        picture = Image.fromarray(np.minimum(deep, 255).astype(np.uint8))
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return picture if picture.mode == mode else picture.convert(mode)
