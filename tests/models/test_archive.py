from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact, StartError
from forecastle.models.archive import write_archive
from forecastle.models.unpack import unpack
from models.builders import tree


@pytest.mark.parametrize("compress", [False, True])
def test_the_same_files_give_the_same_bytes(tmp_path: Path, compress: bool) -> None:
    weights = tmp_path / "w"
    weights.write_bytes(b"w" * 5000)
    write_archive(tmp_path / "a.zip", {"b": b"2", "a": weights}, compress=compress)
    os.utime(weights, (1, 1))
    weights.chmod(0o600)
    write_archive(tmp_path / "b.zip", {"a": b"w" * 5000, "b": b"2"}, compress=compress)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert ((tmp_path / "a.zip").stat().st_size < 5000) is compress


def test_what_is_written_unpacks_to_the_same_files(tmp_path: Path) -> None:
    source = tmp_path / "w"
    source.write_bytes(bytes(range(256)) * 9000)
    files: dict[str, Path | bytes] = {"net-symbol.json": b"{}", "sub/x": b"", "net-0000.params": source}
    write_archive(tmp_path / "a.zip", files)
    expected = {"net-symbol.json": b"{}", "sub/x": b"", "net-0000.params": source.read_bytes()}
    assert tree(unpack(tmp_path / "a.zip", tmp_path / "cache")) == expected


@pytest.mark.parametrize("name", ["../a", "/a", "a\\b"])
def test_a_name_that_could_not_be_unpacked_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArtifact, match=r"a\.zip"):
        write_archive(tmp_path / "a.zip", {name: b""})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_archive_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    write_archive(path, {"a": b"old"})
    before = path.read_bytes()
    with pytest.raises(StartError, match=r"No such file or directory .*missing"):
        write_archive(path, {"a": b"new", "b": tmp_path / "missing"})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_other_tools_find_the_archive_sound(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.zip", {"a": b"1", "b": b"2"}, compress=True)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a", "b"]
