"""MXNet 1.9.1, imported so that it works with numpy's later versions too.

It was the last release, and knows numpy up to 1.23. What it misses in later ones are names that numpy has dropped; they
are put back, for this process alone, before it is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np

from forecastle.errors import LoadFailed

_DROPPED: dict[str, Any] = {
    "PZERO": 0.0,
    "NZERO": -0.0,
    "NINF": -np.inf,
    "PINF": np.inf,
    "NaN": np.nan,
    "NAN": np.nan,
    "Inf": np.inf,
    "infty": np.inf,
    "Infinity": np.inf,
    "bool": np.bool_,
    "float_": np.float64,
    "round_": np.round,
    "product": np.prod,
    "sometrue": np.any,
    "alltrue": np.all,
    "unicode_": np.str_,
    "string_": np.bytes_,
}
_FALLBACKS = ("fallback.py", "fallback_linalg.py")
_NAME = re.compile(r"onp\.((?:linalg\.)?\w+)")


def _put_back() -> None:
    for name, value in _DROPPED.items():
        if name not in vars(np):
            setattr(np, name, value)
    spec = importlib.util.find_spec("mxnet")
    if spec is None or spec.origin is None or np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return
    # MXNet looks up many of numpy's functions when it is imported, whoever calls them later.
    for file in _FALLBACKS:
        text = (Path(spec.origin).parent / "numpy" / file).read_text(encoding="utf-8")
        for found in _NAME.findall(text):
            owner = np.linalg if found.startswith("linalg.") else np
            name = found.rpartition(".")[2]
            if not hasattr(owner, name):
                setattr(owner, name, _missing(name))


def _missing(name: str) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise AttributeError(f"numpy {np.__version__} has no {name}, which MXNet 1.9.1 calls")

    return call


def _imported() -> Any:
    _put_back()
    try:
        return importlib.import_module("mxnet")
    except OSError as error:  # a library of the system's that it needs, such as libgomp
        raise LoadFailed(f"MXNet cannot be imported: {error}; a slim image needs libgomp1 and libquadmath0") from None


mx: Any = _imported()
MXNetError: type[Exception] = mx.base.MXNetError
