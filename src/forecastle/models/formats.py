"""Telling a model's file by what it holds: its first bytes or, for the formats that are zips, the names in it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import NamedTuple

from forecastle.errors import BadArtifact
from forecastle.models.mar import MANIFEST as MAR_MANIFEST
from forecastle.models.onnx_file import onnx_fault
from forecastle.models.pickles import is_pickle

HEAD = 512
"""How many of a file's first bytes are looked at."""

ENDINGS = (
    *(".onnx", ".joblib", ".pkl", ".pickle", ".skops", ".ubj", ".xgb", ".json"),
    *(".txt", ".pt", ".pth", ".pt2", ".ts", ".jit", ".keras", ".h5", ".hdf5"),
)
"""The endings that such files have by custom: they make no model's name and no module."""

SAVED_MODEL = "saved_model.pb"
_XGBOOST = (b'{"learner":', b"{L\x00\x00\x00\x00\x00\x00\x00\x07learner")
_LIGHTGBM = b"tree\nversion="
_HDF5 = b"\x89HDF\r\n\x1a\n"


class Format(NamedTuple):
    """A kind of model file, and the runtime that serves it."""

    kind: str
    runtime: str


def format_of(path: Path, origin: str) -> Format | None:
    """Return what model a file holds, or ``None`` where it is none of a known kind.

    Raises:
        BadArtifact: it is a model's file that cannot be served: weights without a program, or a broken ONNX file.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.startswith(b"PK"):
        return _of_zip(path, origin)
    if is_pickle(head, path.name):
        return Format("sklearn", "sklearn")
    if head.startswith(_XGBOOST) or (path.suffix == ".json" and head.replace(b" ", b"").startswith(_XGBOOST[0])):
        return Format("xgboost", "xgboost")
    if head.startswith(_LIGHTGBM):
        return Format("lightgbm", "lightgbm")
    if head.startswith(_HDF5):
        return Format("keras", "keras")
    fault = onnx_fault(path)
    if fault is None:
        return Format("onnx", "onnx")
    if path.suffix == ".onnx":
        raise BadArtifact(f"{origin} is no ONNX model: {fault}; it is {described(head)}")
    return None


def _of_zip(path: Path, origin: str) -> Format | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return None  # whoever unpacks it says what is wrong
    if MAR_MANIFEST in names:
        return None  # an archive, whatever else lies in it
    inside = {name.partition("/")[2] for name in names}
    if "schema.json" in names:
        return Format("skops", "sklearn")
    if {"config.json", "model.weights.h5"} <= names:
        return Format("keras", "keras")
    if {"data.pkl", "constants.pkl"} <= inside:
        return Format("torchscript", "torch")
    if "models/model.json" in inside or "serialized_exported_program.json" in names | inside:
        return Format("torch export", "torch")
    if {"data.pkl", "version"} <= inside:
        raise BadArtifact(
            f"{origin} holds PyTorch weights without their program: save the model with torch.jit.save or "
            "torch.export.save, or write a hook file whose model_fn makes it and loads them"
        )
    return None


def described(head: bytes) -> str:
    """Say what an unknown file begins with."""
    return f"a file that begins with {head[:16]!r}" if head else "an empty file"
