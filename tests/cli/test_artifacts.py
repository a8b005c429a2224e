from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.process import SHIPPING
from forecastle.cli.artifacts import find
from forecastle.cluster.prepare import INSTALLED
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import SourceNotFound


def test_every_model_s_artifact_is_found_in_order(tmp_path: Path) -> None:
    file = tmp_path / "shipping.py"
    file.write_text(SHIPPING)
    specs = [ModelSpec("a", str(file)), ModelSpec("b", None), ModelSpec("c", "json.tool")]
    found = asyncio.run(find(specs, tmp_path / "cache"))
    assert [(artifact.kind, artifact.path) for _, artifact in found] == [
        ("hook file", str(file)),
        (INSTALLED.kind, ""),
        ("module", "json.tool"),
    ]


def test_the_first_source_that_is_missing_is_raised(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"gone\.onnx"):
        asyncio.run(find([ModelSpec("a", "gone.onnx"), ModelSpec("b", "lost.onnx")], tmp_path))
