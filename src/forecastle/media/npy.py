"""NPY and NPZ: numpy's own file formats as bodies, read without pickle and without trusting their headers.

The header of an NPY file says how large its array is. It is held against the bytes that are there before anything is
allocated, and an NPZ file is held against ``ARCHIVE_LIMIT`` before anything is unpacked.
"""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from forecastle.errors import BadInput

ARCHIVE_LIMIT = 512 * 1024 * 1024
"""The most bytes the arrays of one NPZ body may unpack to."""

_HEADERS: dict[tuple[int, int], Callable[[io.BytesIO], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

_HEADER_FAULTS = (ValueError, TypeError, SyntaxError, tokenize.TokenError, OverflowError, RecursionError, MemoryError)
"""What numpy raises at a header that is none: it is read as a Python literal."""


def read(data: bytes) -> np.ndarray[Any, Any]:
    """Read an NPY body; the array is a read-only view of it.

    Raises:
        BadInput: it is not NPY, holds Python objects, or is not as long as its header says.
    """
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise BadInput(f"the body is NPY version {version[0]}.{version[1]}; expected 1.0 or 2.0")
        shape, fortran, dtype = _HEADERS[version](file)
    except _HEADER_FAULTS as error:
        raise BadInput(f"the body is not NPY: {_line(error)}") from None
    if dtype.hasobject:
        raise BadInput(
            "the NPY body holds Python objects, which are never unpickled; send an array of numbers or texts"
        )
    size = dtype.itemsize
    for axis in shape:
        size *= axis
    if size != len(data) - file.tell() or size < 0 or not dtype.itemsize:
        raise BadInput(
            f"the NPY body's header says shape {shape} of {dtype} ({size} bytes); "
            f"{len(data) - file.tell()} bytes follow it"
        )
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def read_archive(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Read an NPZ body: its arrays by name.

    Raises:
        BadInput: it is not NPZ, one of its arrays is not NPY, or it unpacks to more than ``ARCHIVE_LIMIT`` bytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > ARCHIVE_LIMIT:
                raise BadInput(f"the NPZ body unpacks to {size} bytes; the limit is {ARCHIVE_LIMIT}")
            members = {member.filename: archive.read(member) for member in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        # RuntimeError: encrypted; its subclass NotImplementedError: an unknown compression.
        raise BadInput(f"the body is not NPZ: {_line(error)}") from None
    return {name.removesuffix(".npy"): _member(name, content) for name, content in members.items()}


def _member(name: str, data: bytes) -> np.ndarray[Any, Any]:
    try:
        return read(data)
    except BadInput as error:
        raise BadInput(f"in the NPZ body, {name!r}: {error.message}") from None


def write(value: Any) -> bytes:
    """Write an array, or nested lists of numbers, as NPY; a value with Python objects in it is a ``ValueError``."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
    return file.getvalue()


def write_archive(arrays: Any) -> bytes:
    """Write arrays by name as NPZ, uncompressed."""
    if not isinstance(arrays, dict):
        raise TypeError("expected arrays by name")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", write(array))
    return file.getvalue()


def _line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0] or type(error).__name__
