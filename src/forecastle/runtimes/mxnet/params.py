"""MXNet's ``.params`` files: named arrays, read and written with numpy alone.

Everything is little-endian::

    u64 0x112, u64 0, u64 N, N arrays, u64 K, K names (u64 length, UTF-8: "arg:fc_weight", "aux:bn_moving_mean")

    array    V2 (1.0 on), V3 (numpy shapes)   u32 magic, i32 storage, [sparse: shape of the stored values], shape,
                                              i32 device type, i32 device, i32 dtype, [sparse: dtype, shape per index],
                                              values, [sparse: indices]
             V1 (0.12)                        u32 magic, shape, device type, device, dtype, values
             V0 (before)                      as V1 without the magic, its dimensions u32
    shape    i32 ndim, ndim × i64; ndim 0 (in V3: below 0) means that there is no array at all
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecastle.errors import BadArtifact, SourceNotFound

Array = npt.NDArray[Any]

_LIST_MAGIC = 0x112
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_DENSE, _ROW_SPARSE, _CSR = 0, 1, 2
_INDEX_ARRAYS = {_DENSE: 0, _ROW_SPARSE: 1, _CSR: 2}
_BFLOAT16 = 12
_DTYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("<f4"),
    1: np.dtype("<f8"),
    2: np.dtype("<f2"),
    3: np.dtype("u1"),
    4: np.dtype("<i4"),
    5: np.dtype("i1"),
    6: np.dtype("<i8"),
    7: np.dtype("bool"),
    8: np.dtype("<i2"),
    9: np.dtype("<u2"),
    10: np.dtype("<u4"),
    11: np.dtype("<u8"),
}
_CODES = {dtype.newbyteorder("="): code for code, dtype in _DTYPES.items()}
_MAX_NDIM = 32  # numpy 1's limit, and MXNet's
# Sparse arrays become dense. Together they may grow to this many times the file, and a little more for small files:
# far above any real embedding, far below what a forged shape would ask for.
_SPARSE_GROWTH, _SPARSE_FLOOR = 256, 16 << 20


def load(path: str | Path) -> dict[str, Array]:
    """Read every array of the file, by its name with the ``arg:`` or ``aux:`` prefix.

    Dense arrays are read-only views of one buffer that holds the file; sparse ones become dense; bfloat16 becomes
    float32. Entries without an array (never initialised) are left out. Anything that is not such a file, to its last
    byte, raises `BadArtifact` with the byte where it goes wrong, before more memory is taken than the file justifies.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SourceNotFound(f"cannot read the parameters {file.name}: {error.strerror}") from error
    return _Reader(data, file.name).arrays()


def save(path: str | Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write the arrays, named as they are, in the V2 layout that MXNet 1.x reads.

    Raises `ValueError` for what that layout cannot hold: scalars, more than 32 axes and other dtypes than numpy's bool,
    integers and floats of up to 64 bits.
    """
    with Path(path).open("wb") as file:
        file.write(struct.pack("<QQQ", _LIST_MAGIC, 0, len(arrays)))
        for name, values in arrays.items():
            array = np.asarray(values)
            code = _CODES.get(array.dtype.newbyteorder("="))
            if code is None or not 0 < array.ndim <= _MAX_NDIM:
                raise ValueError(f"{name}: a .params file cannot hold {array.dtype} of shape {array.shape}")
            file.write(struct.pack(f"<IiI{array.ndim}q", _V2, _DENSE, array.ndim, *array.shape))
            file.write(struct.pack("<iii", 1, 0, code))  # device type 1 is the CPU
            file.write(np.ascontiguousarray(array, _DTYPES[code]).tobytes())
        file.write(struct.pack("<Q", len(arrays)))
        for name in arrays:
            encoded = name.encode()
            file.write(struct.pack("<Q", len(encoded)) + encoded)


class _Reader:
    """A cursor over the file's bytes; whatever does not fit raises `BadArtifact` with the position."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.at = 0
        self.sparse_budget = _SPARSE_FLOOR + _SPARSE_GROWTH * len(data)

    def bad(self, what: str) -> BadArtifact:
        return BadArtifact(f"{self.name} is no readable MXNet parameter file: at byte {self.at}, {what}")

    def need(self, size: int) -> None:
        left = len(self.data) - self.at
        if size > left:
            raise self.bad(f"{size} bytes are expected and {left} are left: the file is cut short or damaged")

    def numbers(self, form: str) -> tuple[int, ...]:
        size = struct.calcsize("<" + form)
        self.need(size)
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += size
        return found

    def number(self, form: str) -> int:
        return self.numbers(form)[0]

    def arrays(self) -> dict[str, Array]:
        if len(self.data) < 24 or self.number("Q") != _LIST_MAGIC:
            self.at = 0
            raise self.bad("the number 0x112 that such a file begins with is missing")
        self.number("Q")  # reserved
        arrays = [self.array() for _ in range(self.number("Q"))]
        names = [self.text() for _ in range(self.number("Q"))]
        if self.at != len(self.data):
            raise self.bad(f"the list ends, but {len(self.data) - self.at} bytes follow")
        if len(names) != len(arrays):
            raise self.bad(f"{len(arrays)} arrays have {len(names)} names")
        if len(set(names)) != len(names):
            raise self.bad("two arrays have the same name")
        return {name: array for name, array in zip(names, arrays, strict=True) if array is not None}

    def text(self) -> str:
        size = self.number("Q")
        self.need(size)
        try:
            found = self.data[self.at : self.at + size].decode()
        except UnicodeDecodeError as error:
            raise self.bad("a name is not UTF-8") from error
        self.at += size
        return found

    def shape(self, dimension: str = "q") -> tuple[int, ...] | None:
        ndim = self.number("i")
        if ndim < 0:
            return None
        if ndim > _MAX_NDIM:
            raise self.bad(f"an array has {ndim} axes, where at most {_MAX_NDIM} can be")
        shape = self.numbers(f"{ndim}{dimension}")
        # The product leaves zeros out, as numpy does when it judges whether a shape can be addressed.
        if any(size < 0 for size in shape) or math.prod(size or 1 for size in shape) >= 1 << 59:
            raise self.bad(f"an array has the impossible shape {shape}")
        return shape

    def array(self) -> Array | None:
        magic = self.number("I")
        if magic in {_V2, _V3}:
            return self.modern_array(has_scalars=magic == _V3)
        if magic == _V1:
            shape = self.shape()
        else:  # V0 has no magic: what was read is its number of axes
            self.at -= 4
            shape = self.shape("I")
        if not shape:
            return None
        self.numbers("ii")
        return self.values(shape, self.number("i"))

    def modern_array(self, *, has_scalars: bool) -> Array | None:
        storage = self.number("i")
        if storage not in _INDEX_ARRAYS:
            raise self.bad(f"the storage type {storage} is unknown (0 dense, 1 row sparse, 2 csr)")
        stored = self.shape() if storage != _DENSE else None
        shape = self.shape()
        if shape is None or (not shape and not has_scalars):
            return None
        self.numbers("ii")
        dtype = self.number("i")
        indices = [(self.number("i"), self.shape()) for _ in range(_INDEX_ARRAYS[storage])]
        values = self.values(shape if storage == _DENSE else stored, dtype)
        if storage == _DENSE:
            return values
        return self.dense(shape, values, [self.values(size, code) for code, size in indices])

    def values(self, shape: tuple[int, ...] | None, code: int) -> Array:
        """A view of the next bytes as an array."""
        if shape is None:
            raise self.bad("a part of a sparse array has no shape")
        wide = code == _BFLOAT16
        dtype = np.dtype("<u2") if wide else _DTYPES.get(code)
        if dtype is None:
            raise self.bad(f"the dtype {code} is unknown")
        count = math.prod(shape)
        self.need(count * dtype.itemsize)
        found: Array = np.frombuffer(self.data, dtype, count, self.at).reshape(shape)
        self.at += found.nbytes
        if wide:  # the upper half of a float32
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found

    def dense(self, shape: tuple[int, ...], values: Array, indices: list[Array]) -> Array:
        """A sparse array in full: its stored rows, or the stored elements of a matrix, set into zeros."""
        size = math.prod(shape) * values.dtype.itemsize
        self.sparse_budget -= size
        if self.sparse_budget < 0:
            raise self.bad(f"a sparse array of shape {shape} would be out of all proportion to the file")
        if any(index.ndim != 1 or index.dtype.kind not in "iu" for index in indices):
            raise self.bad("the indices of a sparse array are no list of integers")
        full = np.zeros(shape, values.dtype)
        if len(indices) == 1:
            rows = indices[0]
            if not shape or values.shape != (len(rows), *shape[1:]) or not _within(rows, shape[0]):
                raise self.bad(f"the rows of a sparse array do not fit its shape {shape}")
            full[rows.astype(np.int64)] = values
            return full
        starts, columns = indices
        if len(shape) != 2 or len(starts) != shape[0] + 1 or values.shape != columns.shape:
            raise self.bad(f"the parts of a csr matrix do not fit its shape {shape}")
        if not (_within(starts, len(columns) + 1) and _within(columns, shape[1])):
            raise self.bad(f"the indices of a csr matrix do not fit its shape {shape}")
        ends = starts.astype(np.int64)
        counts = ends[1:] - ends[:-1]
        if ends[0] != 0 or ends[-1] != len(columns) or (counts < 0).any():
            raise self.bad("the rows of a csr matrix contradict each other")
        full[np.repeat(np.arange(shape[0]), counts), columns.astype(np.int64)] = values
        return full


def _within(indices: Array, limit: int) -> bool:
    return indices.size == 0 or bool((indices.min() >= 0) and (indices.max() < limit))
