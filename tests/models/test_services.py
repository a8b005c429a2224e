from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact, UsageError
from forecastle.models.services import CLASSES, packed_service, parse_service, read_manifest, split_service

CLASS = "class Mine(MXNetBaseService):\n    pass\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("my", ("my", "")),
        ("my:Mine", ("my", "Mine")),
        ("/a/b.py:Mine", ("/a/b.py", "Mine")),
        ("/a:b/c.py", ("/a:b/c.py", "")),
        (":Mine", ("", "Mine")),
    ],
)
def test_the_class_stands_behind_the_last_colon(text: str, parts: tuple[str, str]) -> None:
    assert split_service(text) == parts


@pytest.mark.parametrize(
    "text", ["mxnet_vision_service", "mms.mxnet_vision_service", "mms.model_service.mxnet_vision_service"]
)
def test_mms_s_names_mean_the_bundled_services(text: str) -> None:
    assert parse_service(text) == f"{CLASSES}:MXNetVisionService"
    assert parse_service("mxnet_model_service") == f"{CLASSES}:MXNetBaseService"


def test_a_file_is_found_by_its_path_and_by_its_module_s_name(here: Path) -> None:
    (here / "my.py").write_text(CLASS)
    for text in ("my.py", "./my.py", str(here / "my.py"), "my"):
        assert parse_service(text) == str(here / "my.py")
        assert parse_service(f"{text}:Mine") == f"{here / 'my.py'}:Mine"


def test_an_installed_module_keeps_its_name() -> None:
    assert parse_service("json.tool:Mine") == "json.tool:Mine"


def test_a_package_of_the_working_folder_is_a_module(here: Path) -> None:
    (here / "pack_of_services").mkdir()
    (here / "pack_of_services" / "__init__.py").touch()
    (here / "pack_of_services" / "inner.py").write_text(CLASS)
    assert parse_service("pack_of_services.inner") == "pack_of_services.inner"


@pytest.mark.parametrize("text", ["nowhere.py", "a/b", "no_such_module", "", ":Mine", "two words"])
def test_a_service_that_is_nowhere_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        parse_service(text)


def manifest(**model: str) -> str:
    return json.dumps({"Model": model})


def test_the_manifest_names_the_service_of_an_archive(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(CLASS)
    (tmp_path / "MANIFEST.json").write_text(manifest(Service="two.py"))
    assert packed_service(tmp_path, "a.model") == str(tmp_path / "two.py")
    assert read_manifest(tmp_path) == {"Model": {"Service": "two.py"}}


def test_without_a_manifest_the_file_with_a_service_is_the_service(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import mxnet\nclass Helper: pass\n")
    assert packed_service(tmp_path, "a.zip") == ""
    (tmp_path / "mine.py").write_text("import mms.mxnet_model_service as m\nclass A(m.MXNetBaseService): pass\n")
    assert packed_service(tmp_path, "a.zip") == str(tmp_path / "mine.py")


def test_mms_s_own_default_service_is_no_service_of_an_archive(tmp_path: Path) -> None:
    (tmp_path / "mxnet_model_service.py").write_text(
        "import mxnet as mx\nclass MXNetBaseService(SingleNodeService): 1\n"
    )
    (tmp_path / "MANIFEST.json").write_text(manifest(Service="mxnet_model_service.py"))
    assert packed_service(tmp_path, "a.model") == ""


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"MANIFEST.json": manifest(Service="gone.py")}, "names the service file gone.py, which is not in the archive"),
        ({"a.py": CLASS, "b.py": CLASS}, r"holds 2 files with service classes \(a.py, b.py\); name the one to use"),
        ({"a.py": "print 'two'"}, "a.py is not a Python 3 file"),
    ],
)
def test_an_archive_whose_service_is_unclear_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(BadArtifact, match=message):
        packed_service(tmp_path, "a.model")


@pytest.mark.parametrize("text", ["", "[]", "no JSON", '{"Model": 3}', '{"Model": {"Service": 3}}', '{"Model": {}}'])
def test_a_manifest_that_says_nothing_names_no_service(tmp_path: Path, text: str) -> None:
    (tmp_path / "MANIFEST.json").write_text(text)
    assert packed_service(tmp_path, "a.model") == ""
