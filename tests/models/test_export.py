from __future__ import annotations

from pathlib import Path

import pytest

from forecastle.errors import SourceNotFound, UnknownArtifact, UsageError
from forecastle.models.export import Gathered, Order, check_read, collect, gather, stage
from models.builders import MMS, make_directory, make_onnx, make_zip, tree


def gathered(source: Path, **options: object) -> Gathered:
    order = Order("net", str(source), Path("net.zip"), **options)  # type: ignore[arg-type]
    return gather(order, source.parent / "net.zip", cache=source.parent / "cache")


def test_a_folder_s_files_are_all_but_hidden_ones_manifests_and_the_target(tmp_path: Path) -> None:
    folder = make_directory(
        tmp_path / "net", MMS | {"MANIFEST.json": b"{}", ".git": b"", "vocab.txt": b"", "net.zip": b""}
    )
    (folder / "code" / "__pycache__").mkdir(parents=True)
    (folder / "code" / "__pycache__" / "x.pyc").touch()
    (folder / "code" / "inference.py").touch()
    (folder / ".cache").mkdir()
    (folder / ".cache" / "x").touch()
    (folder / "gone").symlink_to("nowhere")
    assert set(collect(folder, folder / "net.zip")) == {*MMS, "vocab.txt", "code/inference.py"}


def test_an_archive_is_its_files_with_one_folder_around_them_or_none(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", MMS)
    make_zip(tmp_path / "b.zip", {f"net/{name}": content for name, content in MMS.items()})
    first, second = gathered(tmp_path / "a.zip"), gathered(tmp_path / "b.zip")
    assert first.files.keys() == second.files.keys() == MMS.keys()
    assert first.single is None
    assert first.source == tmp_path / "a.zip"


def test_a_file_brings_what_its_runtime_reads_beside_it(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(make_onnx())
    (tmp_path / "hooks.py").touch()
    for name in ("synset.txt", "other.txt"):
        (tmp_path / name).write_bytes(MMS["synset.txt"])
    found = gathered(tmp_path / "m.onnx")
    assert set(found.files) == {"m.onnx", "synset.txt"}
    assert found.single is not None
    assert found.single.kind == "onnx"
    assert set(gathered(tmp_path / "hooks.py").files) == {"hooks.py"}


def test_files_that_are_given_take_the_place_of_the_source_s(tmp_path: Path) -> None:
    folder = make_directory(tmp_path / "net", MMS)
    other = make_directory(tmp_path / "other", dict.fromkeys(("mine.json", "words", "service.py", "v", "r.txt"), b""))
    found = gathered(
        folder,
        signature=other / "mine.json",
        synset=other / "words",
        service=other / "service.py",
        requirements=other / "r.txt",
        files=(other / "v",),
    ).files
    assert found["signature.json"] == other / "mine.json"
    assert found["synset.txt"] == other / "words"
    assert found["requirements.txt"] == other / "r.txt"
    assert {"service.py", "v"} < found.keys()


def test_requirements_that_are_given_take_the_place_of_a_script_s(tmp_path: Path) -> None:
    code = make_directory(tmp_path / "net", {"w": b""}) / "code"
    make_directory(code, {"inference.py": b"", "requirements.txt": b"six"})
    (tmp_path / "r.txt").touch()
    found = gathered(tmp_path / "net", requirements=tmp_path / "r.txt").files
    assert set(found) == {"w", "code/inference.py", "code/requirements.txt"}
    assert found["code/requirements.txt"] == tmp_path / "r.txt"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="net"):
        gathered(tmp_path / "net")
    make_directory(tmp_path / "net", MMS)
    with pytest.raises(SourceNotFound, match=r"gone\.json: there is no such file"):
        gathered(tmp_path / "net", signature=tmp_path / "gone.json")
    with pytest.raises(UnknownArtifact, match="one part of an MMS archive"):
        gathered(tmp_path / "net" / "net-0000.params")


@pytest.mark.parametrize(("name", "kind"), [("signature.json", "sklearn"), ("synset.txt", "hook file")])
def test_a_file_that_nothing_would_read_is_refused(name: str, kind: str) -> None:
    with pytest.raises(UsageError, match=f"of the kind '{kind}', which reads no {name}; leave --s"):
        check_read(name, kind, "m")
    check_read(name, "onnx", "m")


def test_the_stage_holds_the_same_files_without_copying_them(tmp_path: Path) -> None:
    folder = make_directory(tmp_path / "net", {"w": b"weights"})
    (folder / "link").symlink_to("w")
    stage({"w": folder / "w", "sub/link": folder / "link"}, tmp_path / "stage")
    assert tree(tmp_path / "stage") == {"w": b"weights", "sub/link": b"weights"}
    assert (tmp_path / "stage" / "w").samefile(folder / "w")
    assert not (tmp_path / "stage" / "sub" / "link").is_symlink()
