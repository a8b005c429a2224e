"""Environments beside the tests' own, for packages that must not be in it; kept in the project's cache."""

from __future__ import annotations

from pathlib import Path

from forecastle.cluster.environments.cache import interpreter

CACHE = Path(__file__).parents[1] / ".cache" / "side"


def side_environment(*requirements: str) -> str:
    """Return the Python of an environment that has these packages; several tests may ask for one at once."""
    return interpreter(requirements, "script", cache=CACHE, origin="the tests")
