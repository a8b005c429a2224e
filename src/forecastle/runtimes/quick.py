"""The quick way of the common case: JSON floats for the one input of rank 2.

The bytes are decoded straight to lists of floats by a typed decoder, checked by their lengths alone, and left as lists
for the batch to convert at once. Whatever is not exactly that is left to the careful way, which knows the reasons.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from forecastle import media
from forecastle.messages import Part
from forecastle.models.signature import Signature
from forecastle.runtimes.batching import Item


class Quick:
    """Reads a part for a model whose one input has ``size`` floats a row (``None``: any) and one of ``names``."""

    def __init__(self, names: set[str], size: int | None) -> None:
        self._names = names
        self._size = size
        self._row = msgspec.json.Decoder(list[float]).decode
        self._rows = msgspec.json.Decoder(list[list[float]]).decode
        self._row_by_name = msgspec.json.Decoder(dict[str, list[float]]).decode
        self._rows_by_name = msgspec.json.Decoder(dict[str, list[list[float]]]).decode

    @staticmethod
    def of(signature: Signature, names: set[str]) -> Quick | None:
        """Return the quick way if the model has the shape for it."""
        if len(signature.inputs) != 1:
            return None
        (tensor,) = signature.inputs
        if len(tensor.shape) != 2 or not tensor.dtype.startswith("float") or tensor.shape[0] not in {None, 1}:
            return None
        return Quick(names, tensor.shape[1])

    def read(self, part: Part) -> Item | None:
        """Read the item, or ``None`` where there is anything out of the ordinary."""
        if not _is_utf8_json(part.content_type) or (part.name and part.name not in self._names):
            return None
        data = part.data
        opening = data.find(b"[")
        single = data[opening + 1 : opening + 2] != b"["
        try:
            if opening == 0:
                rows = [self._row(data)] if single else self._rows(data)
            elif part.name:
                return None
            else:
                by_name = (
                    {k: [row] for k, row in self._row_by_name(data).items()} if single else self._rows_by_name(data)
                )
                ((name, rows),) = by_name.items()
                if name not in self._names or not rows:
                    return None
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        size = self._size or len(rows[0])
        if not size or any(len(row) != size for row in rows):
            return None
        return Item((rows,), ((size,),), len(rows), single)


@lru_cache(256)
def _is_utf8_json(content_type: str) -> bool:
    charset = media.parse(content_type).params.get("charset", "utf-8")
    return not content_type or (media.is_json(content_type) and charset.lower() in {"utf-8", "utf8"})
