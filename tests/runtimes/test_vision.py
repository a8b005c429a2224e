"""Pictures to tensors: formats, modes, orientation, stretching, and what is refused."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from forecastle.errors import BadInput
from forecastle.runtimes import vision
from forecastle.runtimes.vision import decode_image, is_picture

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
CORNERS = np.array([[RED, GREEN], [BLUE, WHITE]], "uint8")
"""Red and green above, blue and white below."""


def picture(pixels: np.ndarray[Any, Any] = CORNERS, enlarged: int = 16) -> Image.Image:
    return Image.fromarray(pixels.repeat(enlarged, 0).repeat(enlarged, 1))


def saved(image: Image.Image, format_: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format_, **options)
    return file.getvalue()


def smooth(height: int, width: int) -> np.ndarray[Any, Any]:
    rows, columns = np.mgrid[0:height, 0:width]
    red = 127 + 100 * np.sin(rows / 40)
    return np.stack([red, 255 * columns / width, 255 * rows / height], axis=2).astype("uint8")


def assert_corners(array: np.ndarray[Any, Any], tolerance: float = 0) -> None:
    np.testing.assert_allclose(array, CORNERS.transpose(2, 0, 1), atol=tolerance)


@pytest.mark.parametrize(
    ("format_", "options", "tolerance"),
    [
        ("PNG", {}, 0),
        ("BMP", {}, 0),
        ("GIF", {}, 0),
        ("WEBP", {"lossless": True}, 0),
        ("WEBP", {"quality": 95}, 12),
        ("JPEG", {"quality": 95, "subsampling": 0}, 4),
        ("JPEG", {"quality": 95, "subsampling": 0, "progressive": True}, 4),
    ],
)
def test_every_format_becomes_channels_height_width_of_red_green_blue(
    format_: str, options: dict[str, Any], tolerance: float
) -> None:
    data = saved(picture(), format_, **options)
    array = decode_image(data, 2, 2)
    assert is_picture(data)
    assert (array.shape, array.dtype, array.flags.c_contiguous) == ((3, 2, 2), np.float32, True)
    assert_corners(array, tolerance)


def test_height_and_width_are_not_confused() -> None:
    array = decode_image(saved(picture(smooth(30, 50), 1)), 10, 20)
    assert array.shape == (3, 10, 20)
    assert (np.diff(array[1], axis=1) > 0).all(), "green rises along the width"
    assert (np.diff(array[2], axis=0) > 0).all(), "blue rises along the height"


def test_a_size_left_open_is_the_pictures_own() -> None:
    data = saved(picture(smooth(30, 50), 1))
    np.testing.assert_array_equal(decode_image(data, None, None), smooth(30, 50).transpose(2, 0, 1))
    assert decode_image(data, None, 20).shape == (3, 30, 20)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "int64"])
def test_values_are_0_to_255_in_the_models_type(dtype: str) -> None:
    array = decode_image(saved(picture()), 2, 2, dtype=dtype)
    assert array.dtype == dtype
    assert_corners(array)


def test_one_channel_is_grey() -> None:
    array = decode_image(saved(picture()), 2, 2, channels=1)
    np.testing.assert_array_equal(array, [[[76, 150], [29, 255]]])


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_a_grey_picture_becomes_three_equal_channels(format_: str) -> None:
    array = decode_image(saved(Image.new("L", (9, 9), 120), format_), 3, 3)
    np.testing.assert_allclose(array, np.full((3, 3, 3), 120), atol=1)


def test_16_bit_grey_is_scaled_and_not_clipped() -> None:
    deep = Image.fromarray(np.array([[0, 0x4000], [0x8000, 0xFFFF]], "uint16"))
    np.testing.assert_array_equal(decode_image(saved(deep), 2, 2, channels=1), [[[0, 0x40], [0x80, 0xFF]]])


def test_16_bit_colour_is_scaled() -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0" + struct.pack(">HHH", 0x1000, 0x8000, 0xF000)))
    array = decode_image(b"\x89PNG\r\n\x1a\n" + header + body + chunk(b"IEND", b""), 1, 1)
    np.testing.assert_array_equal(array.ravel(), [0x10, 0x80, 0xF0])


def test_black_and_white_is_read() -> None:
    image = Image.new("1", (8, 8), 1)
    np.testing.assert_array_equal(decode_image(saved(image), 1, 1), [[[255]], [[255]], [[255]]])


def test_cmyk_is_converted() -> None:
    data = saved(picture().convert("CMYK"), "JPEG", quality=95)
    assert_corners(decode_image(data, 2, 2), 8)


def test_a_palette_is_looked_up() -> None:
    assert_corners(decode_image(saved(picture().convert("P", palette=Image.Palette.ADAPTIVE)), 2, 2))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "P", "RGB", "L"])
def test_transparency_shows_white(mode: str) -> None:
    image = Image.new("RGBA", (4, 4), (10, 10, 10, 0))
    if mode in {"RGBA", "LA"}:
        data = saved(image.convert(mode))
    elif mode == "PA":
        flat = Image.new("P", (4, 4), 0)
        flat.putpalette([10, 10, 10])
        data = saved(flat, transparency=b"\0")
    elif mode == "P":
        data = saved(image, "GIF")
    else:
        data = saved(image.convert(mode), transparency=10 if mode == "L" else (10, 10, 10))
    np.testing.assert_array_equal(decode_image(data, 1, 1), np.full((3, 1, 1), 255))


def test_half_transparency_mixes_with_white() -> None:
    data = saved(Image.new("RGBA", (4, 4), (0, 0, 0, 128)))
    np.testing.assert_allclose(decode_image(data, 1, 1), np.full((3, 1, 1), 127), atol=1)


TURNS = {1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud}
TURNS |= {
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, 1),
    7: lambda a: np.rot90(a, 2).transpose(1, 0, 2),
    8: lambda a: np.rot90(a, -1),
}
"""How a camera that was held so stores an upright scene."""


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP"])
def test_the_picture_is_upright_as_its_exif_says(orientation: int, format_: str) -> None:
    scene = smooth(120, 200)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(TURNS[orientation](scene)))
    array = decode_image(saved(stored, format_, exif=exif, quality=95), 12, 20)
    upright = decode_image(saved(Image.fromarray(scene)), 12, 20)
    np.testing.assert_allclose(array, upright, atol=6)
    assert decode_image(saved(stored, format_, exif=exif), None, None).shape == (3, 120, 200)


@pytest.mark.parametrize(
    "exif", [b"Exif\0\0garbage", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff", b"Exif\0\0II*\0\xff\xff\xff\xff"]
)
def test_broken_metadata_does_not_spoil_a_picture(exif: bytes) -> None:
    assert_corners(decode_image(saved(picture(), "JPEG", exif=exif, quality=95, subsampling=0), 2, 2), 4)


def test_shrinking_averages_the_area() -> None:
    checks = (np.indices((64, 64)).sum(0) % 2 * 255).astype("uint8")
    array = decode_image(saved(Image.fromarray(checks)), 8, 8, channels=1)
    np.testing.assert_allclose(array, np.full((1, 8, 8), 127.5), atol=0.5)


def test_enlarging_is_bilinear() -> None:
    array = decode_image(saved(Image.fromarray(np.array([[0, 200]], "uint8"))), 1, 4, channels=1)
    np.testing.assert_allclose(array, [[[0, 50, 150, 200]]])


@pytest.mark.parametrize("scale", [2, 3, 5, 10, 17])
def test_a_large_jpeg_decoded_at_reduced_size_gives_nearly_the_same_tensor(scale: int) -> None:
    rng = np.random.default_rng(1)
    scene = smooth(64 * scale, 64 * scale).astype(int) + rng.integers(-8, 9, (64 * scale, 64 * scale, 1))
    image = Image.fromarray(scene.clip(0, 255).astype("uint8"))
    data = saved(image, "JPEG", quality=90)
    reduced = decode_image(data, 64, 64)
    full = decode_image(saved(Image.open(io.BytesIO(data))), 64, 64)
    assert np.abs(reduced - full).mean() < 2
    assert np.abs(reduced - full).max() <= 10


@pytest.mark.parametrize(
    "data", [b"", b"no", b"%PDF-1.4", b"\x00" * 100, b"RIFF\0\0\0\0WAVE", saved(picture(), "TIFF")]
)
def test_what_is_no_picture_is_refused_with_the_formats(data: bytes) -> None:
    assert not is_picture(data)
    with pytest.raises(BadInput, match="expected one of JPEG, PNG, WEBP, GIF, BMP"):
        decode_image(data, 2, 2)


@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_a_truncated_picture_is_refused(format_: str, kept: float) -> None:
    rng = np.random.default_rng(1)
    data = saved(Image.fromarray(rng.integers(0, 256, (64, 64, 3), "uint8")), format_)
    with pytest.raises(BadInput, match="the picture"):
        decode_image(data[: int(len(data) * kept)], 8, 8)


SMALL = {format_: saved(picture(smooth(16, 16), 1), format_) for format_ in vision.FORMATS}


@given(st.sampled_from(vision.FORMATS), st.integers(2, 200), st.binary(min_size=1, max_size=8))
def test_a_damaged_picture_is_read_or_refused_in_one_line(format_: str, place: int, noise: bytes) -> None:
    data = bytearray(SMALL[format_])
    data[place : place + len(noise)] = noise
    outcome: Any = None
    try:
        outcome = decode_image(bytes(data), 8, 8).shape
    except BadInput as error:
        outcome = error.message.count("\n")
    assert outcome in {0, (3, 8, 8)}


@pytest.mark.parametrize(("side", "said"), [(20_000, "limit is 67108864"), (8200, "8200 x 8200 pixels")])
def test_a_picture_of_too_many_pixels_is_refused_by_its_header(side: int, said: str) -> None:
    data = bytearray(saved(Image.new("1", (1, 1))))
    data[16:24] = struct.pack(">II", side, side)
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    with pytest.raises(BadInput, match=said):
        decode_image(bytes(data), 8, 8)


def test_pillows_limit_is_left_alone() -> None:
    assert Image.MAX_IMAGE_PIXELS is not None
    assert "MAX_IMAGE_PIXELS" not in Path(vision.__file__).read_text()
