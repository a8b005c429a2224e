"""NPY and NPZ."""

from __future__ import annotations

import contextlib
import io
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from forecastle import media
from forecastle.errors import BadInput
from forecastle.media import npy


def saved(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


@given(stn.arrays(stn.scalar_dtypes(), stn.array_shapes(min_dims=0, max_dims=3, min_side=0)))
def test_an_array_survives(array: np.ndarray[Any, Any]) -> None:
    if array.dtype.itemsize:
        read = media.decode(media.encode(array, media.NPY), media.NPY)
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize("array", [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(6)[::2], np.array(3)])
def test_what_numpy_saves_is_read(array: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(media.decode(saved(array), media.NPY), array)


def test_the_second_version_of_the_format_is_read() -> None:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.arange(3), version=(2, 0))
    np.testing.assert_array_equal(npy.read(file.getvalue()), [0, 1, 2])


def test_python_objects_are_never_unpickled() -> None:
    with pytest.raises(BadInput, match="Python objects, which are never unpickled"):
        media.decode(saved(np.array([{"a": 1}], object), allow_pickle=True), media.NPY)


def test_a_header_that_promises_more_than_is_there_allocates_nothing() -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**6)})
    with pytest.raises(BadInput, match="16 bytes follow it"):
        npy.read(file.getvalue() + b"\0" * 16)


@pytest.mark.parametrize("cut", [0, 1, 6, 9, 40, 127, 130, 143])
def test_a_truncated_array_is_refused(cut: int) -> None:
    with pytest.raises(BadInput, match="NPY"):
        npy.read(saved(np.arange(2.0))[:cut])


@pytest.mark.filterwarnings("ignore")  # numpy has opinions on some spellings of a type
@given(st.binary(max_size=64), st.integers(0, 143))
def test_a_damaged_array_is_read_or_refused(noise: bytes, place: int) -> None:
    data = bytearray(saved(np.arange(2.0)))
    data[place : place + len(noise)] = noise
    with contextlib.suppress(BadInput):
        npy.read(bytes(data))


def test_arrays_by_name_survive() -> None:
    arrays = {"a": np.arange(3), "file": np.array([[1.5]], "float32")}
    read = media.decode(media.encode(arrays, media.NPZ), media.NPZ)
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    with np.load(io.BytesIO(media.encode(arrays, media.NPZ))) as archive:
        assert sorted(archive) == ["a", "file"]


def test_compressed_archives_are_read() -> None:
    file = io.BytesIO()
    np.savez_compressed(file, a=np.zeros(1000))
    np.testing.assert_array_equal(npy.read_archive(file.getvalue())["a"], np.zeros(1000))


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "ARCHIVE_LIMIT", 10_000)
    with pytest.raises(BadInput, match="unpacks to 16128 bytes; the limit is 10000"):
        npy.read_archive(zipped(a=saved(np.zeros(1000)), b=saved(np.zeros(984))))


def test_a_member_that_is_no_array_is_named() -> None:
    with pytest.raises(BadInput, match=r"'b\.npy'"):
        npy.read_archive(zipped(a=saved(np.zeros(1)), b=b"no"))


def test_an_objects_array_in_an_archive_is_refused() -> None:
    with pytest.raises(BadInput, match="never unpickled"):
        npy.read_archive(zipped(a=saved(np.array([None]), allow_pickle=True)))


@pytest.mark.parametrize("cut", [0, 10, 100, 200])
def test_a_truncated_archive_is_refused(cut: int) -> None:
    with pytest.raises(BadInput, match="not NPZ"):
        npy.read_archive(zipped(a=saved(np.zeros(1000)))[:cut])
