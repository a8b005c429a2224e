from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact, SourceNotFound, UnknownArtifact, UsageError
from forecastle.models.artifact import EXPECTED, Artifact, open_artifact
from forecastle.models.mms import find_files
from models.builders import MMS, SIGNATURE, make_directory, make_onnx, make_tar, make_zip
from models.web import Site

EXPECTED_WORDS = "expected an MMS archive .* a model file .* a hook file .* or an importable module"


ONNX = make_onnx()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def find(source: str) -> Artifact:
    return open_artifact(source, cache=Path("cache"))


def without(name: str, **more: bytes) -> dict[str, bytes]:
    return {key: value for key, value in MMS.items() if key != name}


# MMS archives


@pytest.mark.parametrize("name", ["net.zip", "net.model", "renamed", "net.onnx", "net.py"])
def test_an_mms_archive_is_known_whatever_its_file_is_called(here: Path, name: str) -> None:
    make_zip(here / name, MMS)
    found = find(name)
    assert (found.kind, found.runtime, found.source) == ("mms archive", "mxnet", name)
    assert Path(found.path, "net-symbol.json").read_bytes() == b"{}"


def test_a_second_start_unpacks_nothing(here: Path) -> None:
    make_zip(here / "net.zip", MMS)
    first = find("net.zip")
    inode = Path(first.path).stat().st_ino
    assert find("net.zip") == first
    assert Path(first.path).stat().st_ino == inode


def test_the_directory_of_an_archive_is_one_too(here: Path) -> None:
    make_directory(here / "net", MMS)
    assert find("net/") == Artifact("mms archive", "mxnet", str(here / "net"), "net/")
    assert not (here / "cache").exists()


def test_an_archive_in_an_archive_of_another_kind_is_known(here: Path) -> None:
    make_tar(here / "model.tar.gz", MMS)
    assert find("model.tar.gz").runtime == "mxnet"


@pytest.mark.parametrize("litter", [{}, {"__MACOSX/net/._x": b"", ".DS_Store": b""}])
def test_one_folder_around_the_content_is_looked_into(here: Path, litter: dict[str, bytes]) -> None:
    make_zip(here / "net.zip", {f"net/{name}": content for name, content in MMS.items()} | litter)
    assert Path(find("net.zip").path).name == "net"


def test_two_folders_are_not_guessed_at(here: Path) -> None:
    make_zip(here / "net.zip", {"a/net-symbol.json": b"", "b/net-symbol.json": b""})
    with pytest.raises(UnknownArtifact, match=r"net\.zip holds a/, b/; expected"):
        find("net.zip")


def test_the_manifest_and_service_file_of_later_versions_do_no_harm(here: Path) -> None:
    make_zip(here / "net.model", MMS | {"MANIFEST.json": b"not even JSON", "service.py": b"import mxnet"})
    found = find("net.model")
    assert found.runtime == "mxnet"
    files = find_files(Path(found.path), "net.model")
    assert [path.name for path in files.services] == ["service.py"]
    assert (files.symbol.name, files.params.name, files.signature.name) == (
        "net-symbol.json",
        "net-0000.params",
        "signature.json",
    )


def test_the_synset_is_optional_and_the_epoch_free(here: Path) -> None:
    files = {"net-symbol.json": b"", "net-0100.params": b"", "signature.json": SIGNATURE}
    assert find_files(make_directory(here / "net", files), "net").synset is None
    assert find("net").runtime == "mxnet"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (
            without("net-symbol.json"),
            r"net\.zip holds no symbol file; expected exactly one .*; it holds net-0000.params, s",
        ),
        (without("net-0000.params"), r"net\.zip holds no parameter file; expected .*; it holds net-symbol.json, s"),
        ({"signature.json": SIGNATURE, "synset.txt": b"a"}, "no symbol file; .* it holds signature.json, synset.txt"),
        ({"MANIFEST.json": b"{}"}, "no symbol file; .* it holds MANIFEST.json"),
        (
            MMS | {"b-symbol.json": b""},
            r"holds 2 symbol files \(b-symbol.json, net-symbol.json\); expected exactly one",
        ),
        (MMS | {"net-0001.params": b""}, r"holds 2 parameter files \(net-0000.params, net-0001.params\)"),
        (without("net-0000.params") | {"vgg-0000.params": b""}, "do not belong together, .* 'net' and 'vgg'"),
        (without("net-0000.params") | {"net.params": b""}, "net.params has no epoch number; expected net-0000.params"),
        (without("net-symbol.json") | {"-symbol.json": b""}, "-symbol.json has no prefix"),
        (
            without("signature.json"),
            "holds no signature.json, which names the model's inputs, .* it holds net-0000.params",
        ),
        (MMS | {"signature.json": b"{'input': []}"}, r"signature\.json of net\.zip is not JSON: .* single quotes"),
        (MMS | {"signature.json": b'{"inputs": []}'}, r"signature\.json of net\.zip: inputs is an empty list"),
        (MMS | {"net.onnx": ONNX}, "holds both MXNet and ONNX files"),
    ],
)
def test_each_fault_of_an_mms_archive_has_its_own_sentence(here: Path, files: dict[str, bytes], says: str) -> None:
    make_zip(here / "net.zip", files)
    with pytest.raises(BadArtifact, match=says):
        find("net.zip")


def test_a_truncated_archive_is_refused_by_name(here: Path) -> None:
    data = make_zip(here / "net.zip", MMS).read_bytes()
    (here / "net.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(BadArtifact, match=r"net\.zip is a truncated or corrupt zip archive"):
        find("net.zip")


@pytest.mark.parametrize("name", ["net-symbol.json", "net-0000.params"])
def test_one_part_of_an_archive_is_answered_with_what_to_give(here: Path, name: str) -> None:
    (here / name).write_bytes(b"{}")
    with pytest.raises(
        UnknownArtifact, match=f"{name} is one part of an MMS archive; give the archive, or the directory"
    ):
        find(name)


# ONNX


@pytest.mark.parametrize("name", ["net.onnx", "net.bin", "net"])
def test_an_onnx_file_is_known_whatever_it_is_called(here: Path, name: str) -> None:
    (here / name).write_bytes(ONNX)
    assert find(name) == Artifact("onnx", "onnx", str(here / name), name)


def test_a_directory_with_one_onnx_file_is_one(here: Path) -> None:
    make_directory(here / "net", {"model.onnx": ONNX, "signature.json": SIGNATURE, "synset.txt": b"", "notes.md": b""})
    assert find("net") == Artifact("onnx", "onnx", str(here / "net"), "net")


def test_a_zip_with_an_onnx_file_is_one(here: Path) -> None:
    make_zip(here / "net.zip", {"top/model.onnx": ONNX})
    assert find("net.zip").kind == "onnx"


def test_two_onnx_files_are_not_chosen_from(here: Path) -> None:
    make_directory(here / "net", {"a.onnx": ONNX, "b.onnx": ONNX})
    with pytest.raises(BadArtifact, match=r"net holds 2 model files \(a.onnx, b.onnx\); expected exactly one"):
        find("net")


def test_a_broken_onnx_file_is_refused_with_the_reason(here: Path) -> None:
    make_directory(here / "net", {"a.onnx": ONNX[:-1]})
    with pytest.raises(BadArtifact, match=r"net: a\.onnx is no ONNX model: it is cut off"):
        find("net")
    with pytest.raises(BadArtifact, match=r"net/a\.onnx is no ONNX model: it is cut off"):
        find("net/a.onnx")


@pytest.mark.parametrize("source", ["net", "net/a.onnx"])
def test_a_wrong_signature_beside_an_onnx_file_is_refused(here: Path, source: str) -> None:
    make_directory(here / "net", {"a.onnx": ONNX, "signature.json": b"[]"})
    with pytest.raises(BadArtifact, match=rf"signature\.json of {source} holds \[\]; expected a JSON object"):
        find(source)


# Hook files and modules


@pytest.mark.parametrize("source", ["shipping.py", "./shipping.py", "file://shipping.py"])
def test_a_hook_file_is_known(here: Path, source: str) -> None:
    (here / "shipping.py").write_text("raise RuntimeError('this must not run')")
    assert find(source) == Artifact("hook file", "script", str(here / "shipping.py"), source)


def test_a_module_is_known_and_not_imported(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "lib").mkdir()
    (here / "lib" / "fc_hooks.py").write_text("raise RuntimeError('this must not run')")
    monkeypatch.syspath_prepend(here / "lib")
    assert find("fc_hooks") == Artifact("module", "script", "fc_hooks", "fc_hooks")
    assert "fc_hooks" not in sys.modules


def test_a_package_in_the_working_folder_is_a_module(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_directory(here / "fc_package", {"__init__.py": b""})
    monkeypatch.syspath_prepend(here)
    assert find("fc_package").kind == "module"
    assert find("./fc_package/__init__.py").kind == "hook file"


def test_a_path_goes_before_a_module_of_its_name(here: Path) -> None:
    make_directory(here / "json", MMS)
    assert find("json").kind == "mms archive"


def test_a_package_that_cannot_be_imported_from_here_is_described(here: Path) -> None:
    make_directory(here / "fc_not_on_path", {"__init__.py": b""})
    with pytest.raises(UnknownArtifact, match=r"fc_not_on_path holds __init__\.py; expected"):
        find("fc_not_on_path")


# Sources


def test_a_url_of_an_archive_is_downloaded_and_unpacked(site: Site, here: Path) -> None:
    calls: list[str] = []

    def progress(activity: str, done: int, total: int | None) -> None:
        calls.append(activity)

    url = site.put("/models/net.model", make_zip(here / "net.zip", MMS).read_bytes(), etag='"1"')
    found = open_artifact(url, cache=here / "cache", progress=progress)
    assert (found.kind, found.source) == ("mms archive", url)
    assert list(dict.fromkeys(calls)) == ["downloading net.model", "unpacking net.model"]
    calls.clear()
    assert open_artifact(url, cache=here / "cache", progress=progress) == found
    assert calls == [], "the second start neither downloads nor unpacks"


def test_a_url_of_a_hook_file_keeps_its_ending(site: Site, here: Path) -> None:
    found = find(site.put("/shipping.py", b"pass"))
    assert found.kind == "hook file"
    assert found.path.endswith("/shipping.py")
    assert Path(found.path).is_absolute()


def test_a_web_page_in_place_of_a_model_is_described(site: Site, here: Path) -> None:
    with pytest.raises(UnknownArtifact, match=r"begins with b'<html>'; expected an MMS archive"):
        find(site.put("/net.zip", b"<html>"))


@pytest.mark.parametrize("source", ["", " "])
def test_an_empty_source_is_refused(here: Path, source: str) -> None:
    with pytest.raises(UsageError, match="the source of a model is empty; expected"):
        find(source)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nothing.zip", r"nothing\.zip: there is no file or directory at .*/nothing\.zip$"),
        ("resnet-18", "resnet-18: there is no file or directory at .*/resnet-18$"),
        ("fc_nothing", "fc_nothing: there is no file or directory at .*, and no importable module of that name"),
        ("fc_nothing.hooks", "and no importable module of that name"),
        ("x" * 5000, "there is no file or directory at|cannot be read: File name too long"),
        ("file.zip/inside", "there is no file or directory at .*Not a directory"),
    ],
)
def test_what_is_missing_is_named(here: Path, source: str, says: str) -> None:
    (here / "file.zip").write_bytes(b"")
    with pytest.raises(SourceNotFound, match=says):
        find(source)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "thing is an empty file"),
        (b"hello, world of models", "thing is a file that begins with b'hello, world of '"),
        (b"\x80\x09\x95", r"begins with b'\\x80\\t\\x95'"),
    ],
)
def test_an_unknown_file_is_described_with_what_was_expected(here: Path, data: bytes, says: str) -> None:
    (here / "thing").write_bytes(data)
    with pytest.raises(UnknownArtifact, match=f"{says}; {EXPECTED_WORDS}"):
        find("thing")


def test_an_unknown_directory_is_listed_with_what_was_expected(here: Path) -> None:
    make_directory(here / "thing", {f"f{index:02}": b"" for index in range(11)} | {".hidden": b""})
    with pytest.raises(UnknownArtifact, match=r"thing holds f00, .*, f09 and 1 more; expected") as caught:
        find("thing")
    assert caught.value.message.endswith(EXPECTED)
    make_directory(here / "empty", {})
    with pytest.raises(UnknownArtifact, match="empty holds nothing; expected"):
        find("empty")


def test_a_pipe_is_refused_without_waiting_for_its_writer(here: Path) -> None:
    os.mkfifo(here / "pipe")
    with pytest.raises(UnknownArtifact, match="pipe is neither a file nor a directory"):
        find("pipe")
