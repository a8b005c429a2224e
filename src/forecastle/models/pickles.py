"""Files of scikit-learn: pickles, plain or as joblib compresses them, and skops, which is a zip with a schema."""

from __future__ import annotations

import zipfile
from pathlib import Path

_PROTOCOLS = range(2, 6)
_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""What PyTorch's legacy files begin with: a pickle too, of its magic number."""
_COMPRESSED = (b"\x78", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18")
_ENDINGS = (".joblib", ".pkl", ".pickle")
_SCHEMA = "schema.json"


def is_pickle(head: bytes, name: str) -> bool:
    """Say whether a file that begins like this is a pickle; a compressed one is told by its name's ending."""
    if len(head) > 1 and head[0] == 0x80 and head[1] in _PROTOCOLS:
        return not head.startswith(_TORCH)
    return name.lower().endswith(_ENDINGS) and head.startswith(_COMPRESSED)


def is_skops(path: Path) -> bool:
    """Say whether a file is of skops, by what it holds."""
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return _SCHEMA in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
