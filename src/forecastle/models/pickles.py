"""Telling pickles, which are scikit-learn's files: plain, or as joblib compresses them."""

from __future__ import annotations

_PROTOCOLS = range(2, 6)
_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""What PyTorch's legacy files begin with: a pickle too, of its magic number."""
_COMPRESSED = (b"\x78", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18")
_ENDINGS = (".joblib", ".pkl", ".pickle")


def is_pickle(head: bytes, name: str) -> bool:
    """Say whether a file that begins like this is a pickle; a compressed one is told by its name's ending."""
    if len(head) > 1 and head[0] == 0x80 and head[1] in _PROTOCOLS:
        return not head.startswith(_TORCH)
    return name.lower().endswith(_ENDINGS) and head.startswith(_COMPRESSED)
