"""Reads a ``.pth`` file in PyTorch's legacy format (before 1.6) without PyTorch and without running what it says.

The file is five pickles and then numbers: a magic number, a protocol version, facts about the machine, the state
dictionary, the storages' keys; then for each key its count of elements (eight bytes) and the elements. The state
dictionary holds no numbers: its tensors are views, by offset, size and stride, of storages named by persistent ids.

A pickle is a program that may import and call anything. The unpickler here knows six names, all of them harmless, and
refuses the file at the first other one.
"""

from __future__ import annotations

import math
import pickle
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from forecastle.errors import BadArtifact

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
DTYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}

# What a damaged pickle raises, besides the class made for it.
_DAMAGE = (
    pickle.UnpicklingError,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)


class _Storage(NamedTuple):
    dtype: str
    key: str
    length: int


class _View(NamedTuple):
    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    def of(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Copy the elements in view; as_strided checks nothing itself, so every element must lie in the storage."""
        if len(self.size) != len(self.stride) or min((*self.size, *self.stride, self.offset)) < 0:
            raise ValueError(f"size {self.size} and stride {self.stride} at {self.offset} describe no tensor")
        if 0 in self.size:
            return np.empty(self.size, values.dtype)
        last = self.offset + sum((n - 1) * stride for n, stride in zip(self.size, self.stride, strict=True))
        if last >= values.size or math.prod(self.size) > values.size:
            raise ValueError(f"a tensor of size {self.size} reaches beyond a storage of {values.size} elements")
        strides = [stride * values.itemsize for stride in self.stride]
        return np.array(np.lib.stride_tricks.as_strided(values[self.offset :], self.size, strides), order="C")


def _view(storage: _Storage, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_grad: object) -> _View:
    return _View(storage, offset, size, stride)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Only these names; a storage class becomes its dtype, a string, which no pickle can call or change."""
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _view
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        raise BadArtifact(f"it asks for {module}.{name}, which a file of weights has no need of")

    def persistent_load(self, pid: Any) -> _Storage:
        """The storage an id speaks of; its numbers come later in the file."""
        kind, dtype, key, _device, count, view = pid
        if kind != "storage" or view is not None:
            raise ValueError(f"a persistent id of the kind {kind!r}")
        return _Storage(dtype, key, count)


def load(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Read the state dictionary: each tensor's name and its values, contiguous in C order and writable.

    Raises `BadArtifact`, naming the file, for one that is damaged, in another format, or asks for any name but those
    that weights need.
    """
    with Path(path).open("rb") as file:
        try:
            return _load(file)
        except BadArtifact as error:
            raise BadArtifact(f"{Path(path).name} was refused: {error.message}") from None
        except _DAMAGE as error:
            raise BadArtifact(f"{Path(path).name} is no legacy PyTorch weights, or damaged: {error}") from error


def _load(file: BinaryIO) -> dict[str, npt.NDArray[Any]]:
    magic, protocol, machine = (_Unpickler(file).load() for _ in range(3))
    if (magic, protocol) != (MAGIC, PROTOCOL):
        raise ValueError(f"it starts with {magic!r} and {protocol!r}, expected {MAGIC} and {PROTOCOL}")
    if machine["little_endian"] is not True:
        raise ValueError("its numbers are big-endian")
    state: dict[Any, Any] = _Unpickler(file).load()
    for name, view in state.items():
        if not isinstance(name, str) or not isinstance(view, _View):
            raise TypeError(f"the entry {name!r} is no tensor")
    declared = {view.storage.key: view.storage for view in state.values()}
    values = {key: _read_storage(file, declared[key]) for key in _Unpickler(file).load()}
    return {name: view.of(values[view.storage.key]) for name, view in state.items()}


def _read_storage(file: BinaryIO, storage: _Storage) -> npt.NDArray[Any]:
    (length,) = struct.unpack("<q", file.read(8))
    if length != storage.length or length < 0:
        raise ValueError(f"the storage {storage.key} has {length} elements, its tensors expect {storage.length}")
    dtype = np.dtype(storage.dtype)
    return np.frombuffer(file.read(length * dtype.itemsize), dtype, length)
