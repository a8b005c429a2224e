"""Content types: parsing them, matching them against Accept, and the codecs of the common ones.

A codec turns bytes into a Python value and back:

=========================================  ===========================================================================
JSON (``application/json``, ``…+json``)    msgspec's. Numpy arrays become nested lists, numpy scalars numbers, bytes
                                           base64 texts, sets lists, dates ISO texts. Integers keep every digit. **NaN
                                           and the infinities become null**, in every contract: the one policy.
CSV (``text/csv``)                         a list of rows, no header; a cell that is a number is a ``float``, any other
                                           a text. Written: NaN, the infinities and ``None`` are empty cells.
NPY, NPZ (``application/x-npy``, ``-npz``) an array, a dict of arrays; never pickled.
text (``text/…``)                          a ``str``
anything else, or nothing                  the bytes as they are: decoding never guesses.
=========================================  ===========================================================================

Texts are UTF-8 unless a ``charset`` parameter says otherwise; a byte order mark is dropped. Numpy is optional: without
it NPY and NPZ are unknown types.
"""

from __future__ import annotations

from forecastle.media.codecs import HAS_NUMPY, decode, encode, offers
from forecastle.media.types import BYTES, CSV, JSON, NPY, NPZ, TEXT, MediaType, accept, is_json, negotiate, parse

__all__ = [
    "BYTES",
    "CSV",
    "HAS_NUMPY",
    "JSON",
    "NPY",
    "NPZ",
    "TEXT",
    "MediaType",
    "accept",
    "decode",
    "encode",
    "is_json",
    "negotiate",
    "offers",
    "parse",
]
