"""The environment of models that MXNet itself runs: its last release, and a numpy that it works with here."""

from __future__ import annotations

import sys
from pathlib import Path

_NEWER = Path(__file__).with_name("mxnet-overrides.txt")
"""The numpy of Pythons that MXNet's own choice does not exist for; what it misses there is put back at import."""


def requirements() -> list[str]:
    """Return what is installed; uv picks nothing of it by itself."""
    wanted = ["mxnet==1.9.1", "pillow>=11", "setuptools<81"]
    return [*wanted, f"--override {_NEWER}"] if sys.version_info >= (3, 12) else [*wanted, "numpy<1.24"]
