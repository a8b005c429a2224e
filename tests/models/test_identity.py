from __future__ import annotations

from pathlib import Path

import pytest

from forecastle.models.artifact import open_artifact
from forecastle.models.identity import identity
from models.builders import MMS, make_onnx, make_zip
from models.test_mar import LEGACY, MANIFEST, NOOP_SERVICE, SIGNATURE, TORCHSERVE, mar

LEGACY_FILES = {
    "MANIFEST.json": str(LEGACY).replace("'", '"').encode(),
    "noop_service.py": NOOP_SERVICE,
    "signature.json": SIGNATURE,
}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (mar(MANIFEST), ("noop", "")),
        (mar(TORCHSERVE, **{"needs.txt": b""}), ("net", "2.1")),
        (LEGACY_FILES, ("noop_v0.1", "snapshot")),
        (MMS, ("", "")),
    ],
)
def test_an_archive_says_its_name_and_version(tmp_path: Path, files: dict[str, bytes], said: tuple[str, str]) -> None:
    archive = make_zip(tmp_path / "a.zip", files)
    assert identity(open_artifact(str(archive), cache=tmp_path / "cache")) == said


def test_a_file_says_neither(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(make_onnx())
    assert identity(open_artifact(str(tmp_path / "m.onnx"), cache=tmp_path / "cache")) == ("", "")
