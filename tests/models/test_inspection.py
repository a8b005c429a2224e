from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecastle.errors import UnknownArtifact
from forecastle.models.inspection import Inspection, inspect
from forecastle.models.manifest import entry
from models.builders import MMS, make_directory, make_onnx, make_zip

SERVICE = b"from mms.mxnet_vision_service import MXNetVisionService\nclass Mine(MXNetVisionService): pass\n"
SYMBOL = b'{"nodes": [{"op": "null"}, {"op": "softmax"}]}'


def look(source: Path | str, cache: Path) -> Inspection:
    return inspect(str(source), cache=cache)[1]


def test_an_archive_is_told_by_its_files(tmp_path: Path) -> None:
    files = MMS | {"net-symbol.json": SYMBOL, "mine.py": SERVICE, "requirements.txt": b"# none\nsix>=1\n", "v/x": b"12"}
    path = make_zip(tmp_path / "net.zip", files)
    found = look(path, tmp_path)
    assert (found.kind, found.runtime, found.service, found.requirements) == (
        "mms archive",
        "mxnet",
        "mine.py",
        ["six>=1"],
    )
    assert (found.labels, found.operators, found.sha256) == (["a", "b"], {"softmax": 1}, entry(path).sha256)
    assert found.size == sum(map(len, files.values()))
    assert {file.name: file.role for file in found.files} == {
        "mine.py": "service",
        "net-0000.params": "parameters",
        "net-symbol.json": "network",
        "requirements.txt": "requirements",
        "signature.json": "signature",
        "synset.txt": "labels",
        "v/x": "",
    }
    assert not found.is_data


def test_a_file_is_told_by_itself(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(make_onnx())
    found = look(tmp_path / "m.onnx", tmp_path)
    assert [(file.name, file.role) for file in found.files] == [("m.onnx", "model")]
    assert found.operators == {"Relu": 1}
    assert found.is_data
    (tmp_path / "hooks.py").touch()
    assert not look(tmp_path / "hooks.py", tmp_path).is_data


def test_a_module_has_no_files(tmp_path: Path) -> None:
    assert look("json.tool", tmp_path) == Inspection("json.tool", "module", "script")


def test_files_that_are_not_those_of_the_manifest_are_faults(tmp_path: Path) -> None:
    manifest = {"Files": {"synset.txt": {"sha256": "0", "size": 1}}}
    folder = make_directory(
        tmp_path / "net", MMS | {"net-symbol.json": SYMBOL, "MANIFEST.json": json.dumps(manifest).encode()}
    )
    found = look(folder, tmp_path)
    assert found.sha256 == ""
    assert found.faults[0] == "synset.txt is not the file whose digest the manifest has"
    assert found.files[0].role == "manifest"


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    make_zip(tmp_path / "net.zip", {"x": b""})
    with pytest.raises(UnknownArtifact, match=r"net\.zip holds x"):
        look(tmp_path / "net.zip", tmp_path)
