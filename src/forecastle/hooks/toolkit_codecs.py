"""The defaults of SageMaker's toolkit for ``code/inference.py``: arrays in, arrays out.

JSON and CSV become numpy arrays where numpy is installed, as the toolkit's own codecs make them; a JSON object stays a
dict. NPY is never unpickled. An NPZ file is a sparse matrix where scipy wrote one, else a dict of arrays.

https://github.com/aws/sagemaker-inference-toolkit
"""

from __future__ import annotations

import importlib
import importlib.util
import io
from typing import Any

from werkzeug.datastructures import MIMEAccept

from forecastle import media
from forecastle.errors import BadInput, UnsupportedMediaType
from forecastle.hooks import defaults

_SPARSE = {"format", "shape", "data"}


class ToolkitDefaults:
    """What a script's hooks fall back on."""

    def input_fn(self, input_data: bytes, content_type: str) -> Any:
        """Decode by content type, JSON where there is none.

        Raises:
            UnsupportedMediaType: it is none of the toolkit's.
            BadInput: the bytes are not what it says.
        """
        kind = media.parse(content_type).type if content_type else media.JSON
        if media.is_json(kind):
            value = media.decode(input_data, content_type or media.JSON)
            return value if isinstance(value, dict) else _array(value)
        if kind == media.CSV:
            return _table(input_data, content_type)
        if kind in {media.NPY, "text/plain"}:
            return media.decode(input_data, content_type)
        if kind == media.NPZ:
            return _archive(input_data)
        raise UnsupportedMediaType(
            f"the model takes {media.JSON}, {media.CSV}, {media.NPY}, {media.NPZ} or text/plain; found {kind}"
        )

    def output_fn(self, prediction: Any, accept: MIMEAccept) -> tuple[bytes, str]:
        """Write by what the client accepts."""
        return defaults.output_fn(prediction, accept)


def _array(value: Any) -> Any:
    if not media.HAS_NUMPY:
        return value
    try:
        return importlib.import_module("numpy").array(value)
    except ValueError as error:
        raise BadInput(f"the body is no array: {error}") from None


def _table(data: bytes, content_type: str) -> Any:
    """Return rows as numpy's own reader gives them, and so the toolkit: one row a vector, one cell a number."""
    if not media.HAS_NUMPY:
        return media.decode(data, content_type)
    text = media.decode(data, f"text/plain; charset={media.parse(content_type).params.get('charset', 'utf-8')}")
    if not text.strip():
        raise BadInput("the body is empty; expected CSV")
    try:
        return importlib.import_module("numpy").genfromtxt(io.StringIO(text), dtype=None, delimiter=",", encoding=None)
    except ValueError as error:
        raise BadInput(f"the body is not CSV: {' '.join(str(error).split())}") from None


def _archive(data: bytes) -> Any:
    arrays = media.decode(data, media.NPZ)
    if isinstance(arrays, dict) and arrays.keys() >= _SPARSE and importlib.util.find_spec("scipy") is not None:
        try:
            return importlib.import_module("scipy.sparse").load_npz(io.BytesIO(data))
        except (ValueError, NotImplementedError) as error:
            raise BadInput(f"the body is no sparse matrix: {error}") from None
    return arrays
