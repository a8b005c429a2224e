"""The signature: a model's named, typed, shaped inputs and outputs, and their content types."""

from __future__ import annotations

import msgspec


class Tensor(msgspec.Struct, frozen=True):
    """One input or output: its first axis is the batch; ``None`` stands for any size. ``dtype`` is numpy's name."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str = "float32"


class Signature(msgspec.Struct, frozen=True):
    """What a model takes and gives. ``input_type`` and ``output_type`` are content types, as MMS's signature.json."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    input_type: str = "application/json"
    output_type: str = "application/json"
