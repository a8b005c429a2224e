from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact
from forecastle.models import manifest
from forecastle.models.manifest import Entry, Manifest
from models.builders import make_directory


def described(directory: Path) -> dict[str, Path]:
    """Give a directory of files a manifest, and return its files."""
    files = {path.name: path for path in directory.iterdir()}
    written = manifest.write(Manifest("net", "onnx", "onnx", "", manifest.digests(files)))
    (directory / manifest.FILE).write_bytes(written)
    return files


def test_a_file_s_entry_is_its_digest_and_size(tmp_path: Path) -> None:
    content = b"w" * (3 << 20)
    (tmp_path / "w").write_bytes(content)
    assert manifest.entry(tmp_path / "w") == Entry(hashlib.sha256(content).hexdigest(), len(content))


def test_the_digests_are_in_order_and_leave_manifests_out(tmp_path: Path) -> None:
    make_directory(tmp_path / "net", {"b": b"2", "a": b"1", "MANIFEST.json": b"{}", "forecastle.json": b"{}"})
    assert list(manifest.digests({path.name: path for path in (tmp_path / "net").iterdir()})) == ["a", "b"]


def test_files_that_are_not_those_of_the_manifest_are_told(tmp_path: Path) -> None:
    files = described(make_directory(tmp_path / "net", {"a": b"1", "b": b"2", "c": b"3"}))
    assert manifest.faults(tmp_path / "net", files) == []
    files["a"].write_bytes(b"0")
    del files["b"]
    files["d"] = files["a"]
    assert manifest.faults(tmp_path / "net", files) == [
        "a is not the file whose digest the manifest has",
        "b is missing",
        "d is not in the manifest",
    ]


@pytest.mark.parametrize(
    "content", [b"", b"no JSON", b"[]", b"{}", b'{"files": 3}', b'{"files": {"a": {}}}', b"[" * 9999]
)
def test_a_manifest_without_digests_finds_no_fault(tmp_path: Path, content: bytes) -> None:
    folder = make_directory(tmp_path / "net", {"a": b"1", "forecastle.json": content, "MANIFEST.json": content})
    assert manifest.faults(folder, {"a": folder / "a"}) == []
    assert manifest.hook_file(folder, "net") is None


def test_a_hook_file_that_the_manifest_names_must_be_there(tmp_path: Path) -> None:
    written = manifest.write(Manifest("net", "hook file", "script", "../hooks.py", {}))
    folder = make_directory(tmp_path / "net", {"forecastle.json": written})
    (tmp_path / "hooks.py").touch()
    with pytest.raises(
        BadArtifact, match=r"^net\.zip: forecastle\.json names the hook file '\.\./hooks\.py', which is"
    ):
        manifest.hook_file(folder, "net.zip")
    (folder / "hooks.py").touch()
    assert manifest.hook_file(folder, "net.zip") == folder / "hooks.py"
