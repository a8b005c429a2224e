"""MXNet's operators as ONNX nodes, grouped by family; importing the package fills the table."""

from __future__ import annotations

from forecastle.runtimes.mxnet.operators import (
    activation,
    arithmetic,
    detection,
    layers,
    normalization,
    outputs,
    pooling,
    recurrent,
    shapes,
    slicing,
)
from forecastle.runtimes.mxnet.operators.table import OPERATORS

__all__ = [
    "OPERATORS",
    "activation",
    "arithmetic",
    "detection",
    "layers",
    "normalization",
    "outputs",
    "pooling",
    "recurrent",
    "shapes",
    "slicing",
]
