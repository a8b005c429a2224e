"""Where SageMaker puts a model in its container."""

from __future__ import annotations

import os
from pathlib import Path

MODEL_DIR = "/opt/ml/model"
"""The platform's own place; the variable ``SM_MODEL_DIR`` names another one."""


def model_dir() -> Path:
    """Return the directory of the platform's model, which need not exist."""
    return Path(os.environ.get("SM_MODEL_DIR", MODEL_DIR))
