"""Where SageMaker puts a model in its container."""

from __future__ import annotations

import os
from pathlib import Path

BASE_DIR = "/opt/ml"
"""The platform's own place; the variable ``SAGEMAKER_BASE_DIR`` names another one."""


def base_dir() -> Path:
    """Return the directory that has the platform's models, which need not exist."""
    return Path(os.environ.get("SAGEMAKER_BASE_DIR") or BASE_DIR)


def model_dir() -> Path:
    """Return the directory of the platform's model: what ``SM_MODEL_DIR`` names, else ``model`` in its own place."""
    return Path(os.environ.get("SM_MODEL_DIR") or base_dir() / "model")
