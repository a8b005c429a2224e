"""Which Forecastle serves a model, for what a model's code may ask."""

from __future__ import annotations

import importlib.metadata


def version() -> str:
    """Return the version, or ``unknown`` in an environment that borrows our package without its metadata."""
    try:
        return importlib.metadata.version("forecastle")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
