"""What a TorchScript file says of its inputs: a traced program keeps the types and sizes of what it was traced with.

They lie in the archive as a pickle (``traced_inputs.pkl``). It is read here with every class replaced by a record of
its name, so that reading it runs nothing; PyTorch itself does not show them once the program is loaded.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

from forecastle.models.signature import Tensor

_NAME = "traced_inputs.pkl"
_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


def traced_inputs(path: Path) -> list[Tensor] | None:
    """Return the inputs that a program was traced with, without names, or ``None`` where they are not known.

    The first axis is taken for the batch's, the other sizes are those of the example.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(f"/{_NAME}")]
            if not names:
                return None
            found = _Reader(io.BytesIO(archive.read(names[0]))).load()
        return [_tensor(value) for value in found["forward"]]
    except (zipfile.BadZipFile, pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, AttributeError):
        return None  # what is not as we know it: nothing is known


def _tensor(value: tuple[str, tuple[int, ...]]) -> Tensor:
    dtype, sizes = value
    return Tensor("", (None, *sizes[1:]) if sizes else (), dtype)


class _Reader(pickle.Unpickler):
    """Reads tensors as pairs of type and sizes."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "restore_type_tag":
            return lambda value, _: value
        if name.startswith("_rebuild_tensor"):
            return lambda storage, _offset, sizes, *_: (storage, sizes)
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if name in _STORAGES:
            return _STORAGES[name]
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        return pid[1]
