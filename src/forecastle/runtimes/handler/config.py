"""TorchServe's ``model-config.yaml``, as far as it is the handler's: how a model is served is said to the server."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from forecastle.errors import LoadFailed


def read_config(path: Path) -> dict[str, Any]:
    """Return what the file says.

    Raises:
        LoadFailed: it is not there or holds no mapping, or PyYAML is not installed.
    """
    try:
        yaml = importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise LoadFailed(
            f"the handler asks for {path.name}, which PyYAML reads: put pyyaml in requirements.txt"
        ) from None
    try:
        found = yaml.safe_load(path.read_bytes())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise LoadFailed(f"{path.name} cannot be read: {error}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise LoadFailed(f"{path.name} holds {type(found).__name__}; expected a mapping")
    return found
