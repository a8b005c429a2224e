from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from forecastle.errors import BadInput, PredictionFailed
from forecastle.runtimes.service import image
from forecastle.runtimes.service.arrays import NDArray, array
from runtimes.archives import jpeg


def noise(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)


def test_pictures_are_read_to_rows_columns_and_channels() -> None:
    colour = image.read(jpeg("red", (256, 256)))
    assert (colour.shape, colour.dtype) == ((256, 256, 3), np.uint8)
    assert colour[0, 0].tolist() == [254, 0, 0]
    assert image.read(jpeg(size=(128, 128)), flag=0).shape == (128, 128, 1)
    assert image.read([jpeg(size=(4, 6))]).shape == (6, 4, 3)
    turned = image.read(jpeg("red"), to_rgb=False)
    assert turned[0, 0, 2] > 250
    out = np.zeros((10, 20, 3), np.float32)
    assert image.read(jpeg("red"), out=out).shape == out.shape
    assert out[0, 0, 0] > 250


@pytest.mark.parametrize("data", [b"", b"GIF87a", b"\xff\xd8\xff", jpeg()[:200], b"not a picture"])
def test_bytes_that_are_no_picture_are_the_client_s_fault(data: bytes) -> None:
    with pytest.raises(BadInput, match="the picture"):
        image.read(data)


@pytest.mark.parametrize("value", [[jpeg(), jpeg()], [], "text", None])
def test_what_is_not_one_picture_s_bytes_is_the_service_s_fault(value: object) -> None:
    with pytest.raises(PredictionFailed, match="takes the bytes of one picture"):
        image.read(value)


def test_a_picture_is_written_as_base64_text() -> None:
    text = image.write(noise(3, 64, 32))
    assert isinstance(text, str)
    with Image.open(io.BytesIO(base64.b64decode(text))) as picture:
        assert (picture.format, picture.mode, picture.size) == ("JPEG", "RGB", (32, 64))
    grey = image.write(noise(64, 32, 1), flag=0, dim_order="HWC")
    assert isinstance(grey, str)
    with Image.open(io.BytesIO(base64.b64decode(grey))) as picture:
        assert (picture.mode, picture.size) == ("L", (32, 64))


def test_the_first_form_of_write_saves_a_file(tmp_path: Path) -> None:
    pixels = noise(3, 8, 6)
    assert image.write(str(tmp_path / "a.png"), pixels) is None
    assert np.array_equal(image.read((tmp_path / "a.png").read_bytes()), pixels.transpose(1, 2, 0))
    assert image.write(tmp_path / "b.png", pixels[:1], 0) is None
    assert np.array_equal(image.read((tmp_path / "b.png").read_bytes(), 0), pixels[:1].transpose(1, 2, 0))


def test_what_is_written_is_held_to_a_picture_s_range() -> None:
    text = image.write(np.array([[[-9.0, 300.0, np.nan, 7.6]]]), 0, "png")
    assert isinstance(text, str)
    assert image.read(base64.b64decode(text), 0)[..., 0].tolist() == [[0, 255, 0, 7]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "found 0 arguments"),
        ((noise(3, 2, 2), 1, "png", "CHW", 5), "found 5 arguments"),
        ((noise(2, 2, 3),), r"takes \(3, height, width\).*found the shape \(2, 2, 3\)"),
        ((noise(3, 2, 2), 1, "jpeg", "WCH"), "dim_order is 'WCH'"),
        ((noise(3, 2, 2), 1, "nonsense"), "knows no format 'nonsense'"),
        ((noise(3, 2, 2), 0), "found the shape"),
    ],
)
def test_what_cannot_be_written_is_said(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(PredictionFailed, match=message):
        image.write(*arguments)


def test_a_picture_is_stretched_to_width_and_height() -> None:
    assert image.resize(noise(245, 156, 3), 128, 256).shape == (256, 128, 3)
    assert image.resize(noise(10, 10), 3, 4).shape == (4, 3)


@settings(max_examples=40, deadline=None)
@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    interp=st.sampled_from([0, 1, 2, 3, 4, 9, 10]),
    channels=st.sampled_from([1, 3, 4]),
    dtype=st.sampled_from(["uint8", "float32", "int16"]),
    level=st.integers(0, 255),
)
def test_a_plain_picture_stays_plain_in_its_own_type(
    size: tuple[int, int], interp: int, channels: int, dtype: str, level: int
) -> None:
    stretched = image.resize(np.full((11, 7, channels), level, dtype), *size, interp)
    assert (stretched.shape, stretched.dtype) == ((size[1], size[0], channels), np.dtype(dtype))
    np.testing.assert_allclose(stretched, level, atol=1e-3)


def test_colours_and_floats_are_stretched_alike() -> None:
    pixels = noise(32, 16, 3)
    for interp in (0, 1, 2, 3, 4, 9):
        whole = image.resize(pixels, 8, 9, interp).astype(np.float32)
        np.testing.assert_allclose(image.resize(pixels.astype(np.float32), 8, 9, interp).clip(0, 255), whole, atol=1.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((noise(1, 3, 4, 4), 2, 2), r"found the shape \(1, 3, 4, 4\)"),
        ((noise(4, 4, 3), 0, 2), "found 0 x 2"),
        ((noise(4, 4, 3), 2, 2, 7), "interp is 7"),
    ],
)
def test_what_cannot_be_stretched_is_said(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(PredictionFailed, match=message):
        image.resize(*arguments)


def test_a_rectangle_is_cut_out_and_stretched() -> None:
    pixels = noise(100, 100, 3)
    assert image.fixed_crop(pixels, 10, 20, 50, 70).shape == (70, 50, 3)
    assert np.array_equal(image.fixed_crop(pixels, 10, 20, 50, 70), pixels[20:90, 10:60])
    assert image.fixed_crop(pixels, 10, 20, 50, 70, size=(5, 7)).shape == (7, 5, 3)


@pytest.mark.parametrize("rectangle", [(-1, 0, 5, 5), (0, 0, 101, 5), (0, 0, 5, 101), (60, 0, 50, 5), (0, 0, 0, 5)])
def test_a_rectangle_outside_the_picture_is_refused(rectangle: tuple[int, int, int, int]) -> None:
    with pytest.raises(PredictionFailed, match="is not inside a picture"):
        image.fixed_crop(noise(100, 100, 3), *rectangle)


def test_colours_are_normalised_as_floats() -> None:
    normal = image.color_normalize(noise(5, 5, 3), 127.5, 127.5)
    assert normal.dtype == np.float32
    assert np.all(np.abs(normal) <= 1)
    by_channel = image.color_normalize(np.full((2, 2, 3), 10), np.array([10, 9, 8]))
    assert by_channel[0, 0].tolist() == [0, 1, 2]


def test_the_batch_s_axis_is_put_in_front() -> None:
    assert image.transform_shape(noise(32, 32, 3)).shape == (1, 3, 32, 32)
    assert image.transform_shape(noise(28, 28, 3), dim_order="NHWC").shape == (1, 28, 28, 3)
    with pytest.raises(PredictionFailed, match="dim_order is 'NCWH'"):
        image.transform_shape(noise(2, 2, 3), "NCWH")
    with pytest.raises(PredictionFailed, match=r"found the shape \(2, 2\)"):
        image.transform_shape(noise(2, 2))


def test_arrays_answer_to_mxnet_s_methods() -> None:
    numbers = array([[1.0, 2.0]])
    assert type(numbers.asnumpy()) is np.ndarray
    assert type(numbers + 1) is NDArray
    assert (array(numbers[:, :1]).asscalar(), numbers.as_in_context("gpu") is numbers) == (1.0, True)
    numbers.wait_to_read()
    for made in (image.read(jpeg()), image.resize(noise(4, 4, 3), 2, 2), image.fixed_crop(noise(4, 4), 0, 0, 2, 2)):
        assert type(made) is NDArray
