"""Pictures as services handle them: arrays of shape (height, width, channels), values 0 to 255 until normalised.

The functions are those of MMS's ``image`` utilities. A wrong array is a fault of the service, so it is told as
``PredictionFailed``; bytes that are no picture are the client's, and ``BadInput``.
"""

from __future__ import annotations

import base64
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.Image import Resampling

from forecastle.errors import PredictionFailed
from forecastle.runtimes.service.arrays import NDArray, array, plain
from forecastle.runtimes.vision import decode_image

_NEAREST, _BILINEAR, _AREA, _BICUBIC, _LANCZOS, _AUTO, _RANDOM = 0, 1, 2, 3, 4, 9, 10
_FILTERS = {
    _NEAREST: Resampling.NEAREST,
    _BILINEAR: Resampling.BILINEAR,
    _AREA: Resampling.BOX,
    _BICUBIC: Resampling.BICUBIC,
    _LANCZOS: Resampling.LANCZOS,
}


def read(buf: Any, flag: int = 1, to_rgb: bool = True, out: Any = None) -> NDArray:
    """Decode a picture's bytes, upright: to three channels, or with a ``flag`` of 0 to one.

    A list of one picture, which is what a service with one input is given, counts as that picture. Without ``to_rgb``
    blue comes first. ``out`` is an array to put it in.

    Raises:
        BadInput: the bytes are no picture, or a broken one.
        PredictionFailed: ``buf`` is not bytes.
    """
    if isinstance(buf, list | tuple) and len(buf) == 1:
        (buf,) = buf
    if not isinstance(buf, bytes | bytearray | memoryview):
        found = f"a list of {len(buf)}" if isinstance(buf, list | tuple) else type(buf).__name__
        raise PredictionFailed(f"image.read takes the bytes of one picture; found {found}")
    pixels = decode_image(bytes(buf), None, None, 3 if flag else 1, "uint8").transpose(1, 2, 0)
    if flag and not to_rgb:
        pixels = pixels[..., ::-1]
    if out is None:
        return array(np.ascontiguousarray(pixels))
    out[...] = pixels
    return array(out)


def write(*arguments: Any, flag: int = 1, format: str = "jpeg", dim_order: str = "CHW") -> str | None:  # noqa: A002
    """Encode a picture, rounded down and held to 0 to 255: ``write(img_arr, flag=1, format="jpeg", dim_order="CHW")``.

    Returns base64 text. In MMS's first form, ``write(filename, img_arr, flag=1)``, a file is written and nothing
    returned. ``dim_order`` is CHW or HWC; an axis of one picture in front is dropped. A ``flag`` of 0 means grey.

    Raises:
        PredictionFailed: the array has no shape of a picture, or the format or order is none.
    """
    file = arguments[0] if arguments and isinstance(arguments[0], str | Path) else None
    pictures = arguments[1:] if file is not None else arguments
    names = ("flag",) if file is not None else ("flag", "format", "dim_order")
    if not 1 <= len(pictures) <= 1 + len(names):
        raise PredictionFailed(f"image.write takes a picture, then {', '.join(names)}; found {len(pictures)} arguments")
    img_arr, *rest = pictures
    given = {"flag": flag, "format": format, "dim_order": dim_order, **dict(zip(names, rest, strict=False))}
    picture = _picture(plain(img_arr), str(given["dim_order"]), grey=not given["flag"])
    if file is not None:
        picture.save(file)
        return None
    buffer = io.BytesIO()
    name = str(given["format"]).lower()
    try:
        picture.save(buffer, "jpeg" if name == "jpg" else name)
    except (KeyError, ValueError):
        raise PredictionFailed(f"image.write knows no format {given['format']!r}; jpeg and png are known") from None
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def resize(src: Any, new_width: int, new_height: int, interp: int = 2) -> NDArray:
    """Stretch a picture to a size, in its own type.

    ``interp`` is 0 nearest, 1 bilinear, 2 area (bilinear where it enlarges), 3 bicubic, 4 Lanczos, 9 the one that suits
    (area to shrink, bicubic to enlarge, bilinear otherwise), 10 any of the first five.

    Raises:
        PredictionFailed: the array has no shape of a picture, the size is not positive, or ``interp`` is unknown.
    """
    pixels = plain(src)
    if pixels.ndim not in {2, 3} or not pixels.size:
        raise PredictionFailed(f"image.resize takes (height, width, channels); found the shape {pixels.shape}")
    size = (int(new_width), int(new_height))
    if min(size) < 1:
        raise PredictionFailed(f"image.resize takes a width and height of at least 1; found {size[0]} x {size[1]}")
    method = _filter(interp, pixels.shape[1::-1], size)
    if pixels.ndim == 3 and pixels.shape[2] == 3 and pixels.dtype == np.uint8:
        return array(Image.fromarray(pixels).resize(size, method))
    planes = pixels[..., None] if pixels.ndim == 2 else pixels
    whole = pixels.dtype.kind in "iub"
    stretched = []
    for channel in range(planes.shape[2]):
        plane = np.asarray(Image.fromarray(planes[..., channel].astype(np.float32)).resize(size, method))
        stretched.append(np.rint(plane) if whole else plane)
    result = np.stack(stretched, axis=-1)
    if whole and pixels.dtype.kind != "b":
        limits = np.iinfo(pixels.dtype)
        result = np.clip(result, limits.min, limits.max)  # bicubic and Lanczos overshoot
    result = result.astype(pixels.dtype)
    return array(result[..., 0] if pixels.ndim == 2 else result)


def fixed_crop(  # noqa: PLR0917 -- MMS's order
    src: Any, x0: int, y0: int, w: int, h: int, size: tuple[int, int] | None = None, interp: int = 2
) -> NDArray:
    """Cut out the rectangle of width ``w`` and height ``h`` at (``x0``, ``y0``), and stretch it to ``size`` if given.

    Raises:
        PredictionFailed: the rectangle is not inside the picture.
    """
    pixels = plain(src)
    if min(x0, y0) < 0 or min(w, h) < 1 or pixels.ndim < 2 or y0 + h > pixels.shape[0] or x0 + w > pixels.shape[1]:
        raise PredictionFailed(
            f"image.fixed_crop: {w} x {h} at ({x0}, {y0}) is not inside a picture of the shape {pixels.shape}"
        )
    cut = pixels[y0 : y0 + h, x0 : x0 + w]
    return array(cut) if size is None or tuple(size) == (w, h) else resize(cut, size[0], size[1], interp)


def color_normalize(src: Any, mean: Any, std: Any = None) -> NDArray:
    """Subtract the mean and divide by the deviation, each one number or one for each channel, as 32-bit floats."""
    pixels = plain(src, np.float32) - plain(mean, np.float32)
    return array(pixels if std is None else pixels / plain(std, np.float32))


def transform_shape(img_arr: Any, dim_order: str = "NCHW") -> NDArray:
    """Put an axis for the batch in front, and with NCHW the channels behind it.

    Raises:
        PredictionFailed: ``dim_order`` is neither NCHW nor NHWC, or the array is not (height, width, channels).
    """
    pixels = plain(img_arr)
    if dim_order not in {"NCHW", "NHWC"}:
        raise PredictionFailed(f"image.transform_shape: dim_order is {dim_order!r}; expected 'NCHW' or 'NHWC'")
    if pixels.ndim != 3:
        raise PredictionFailed(f"image.transform_shape takes (height, width, channels); found the shape {pixels.shape}")
    return array(np.ascontiguousarray(pixels.transpose(2, 0, 1) if dim_order == "NCHW" else pixels)[None])


def _picture(pixels: np.ndarray[Any, Any], dim_order: str, *, grey: bool) -> Image.Image:
    if dim_order not in {"CHW", "HWC"}:
        raise PredictionFailed(f"image.write: dim_order is {dim_order!r}; expected 'CHW' or 'HWC'")
    shape, channels = pixels.shape, 1 if grey else 3
    if pixels.ndim == 4 and pixels.shape[0] == 1:
        pixels = pixels[0]
    if pixels.ndim == 3 and dim_order == "CHW":
        pixels = pixels.transpose(1, 2, 0)
    if grey and pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.shape[2] != channels or not pixels.size:
        wanted = f"({channels}, height, width)" if dim_order == "CHW" else f"(height, width, {channels})"
        raise PredictionFailed(
            f"image.write takes {wanted} with dim_order={dim_order!r} and flag={int(not grey)}; found the shape {shape}"
        )
    bytes_ = np.clip(np.nan_to_num(pixels), 0, 255).astype(np.uint8)
    return Image.fromarray(bytes_[..., 0] if grey else np.ascontiguousarray(bytes_))


def _filter(interp: int, old: tuple[int, ...], new: tuple[int, int]) -> Resampling:
    shrinks = new[0] <= old[0] and new[1] <= old[1]
    if interp == _RANDOM:
        interp = random.choice(list(_FILTERS))
    if interp == _AUTO:
        enlarges = new[0] >= old[0] and new[1] >= old[1]
        interp = _AREA if shrinks else _BICUBIC if enlarges else _BILINEAR
    if interp == _AREA and not shrinks:
        interp = _BILINEAR
    if interp not in _FILTERS:
        raise PredictionFailed(f"image.resize: interp is {interp!r}; expected 0 to 4, 9 or 10")
    return _FILTERS[interp]
