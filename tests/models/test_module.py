from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact
from forecastle.models.module import is_module, looks_like_module

BOOM = "raise RuntimeError('this must not run')\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path; what was imported from it is forgotten at the end."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("source", ["shipping", "a.b.c", "_x.y1", "naïve"])
def test_a_dotted_name_may_be_a_module(source: str) -> None:
    assert looks_like_module(source)


@pytest.mark.parametrize(
    "source",
    ["", ".", "a.", ".a", "a..b", "resnet-18", "a/b", "./a", "~a", "a b", "1a", "class", "a.import", "a.py", "a.zip"],
)
def test_any_other_text_is_never_one(source: str) -> None:
    assert not looks_like_module(source)
    assert not is_module(source)


def test_a_module_is_found_and_not_imported(packages: Path) -> None:
    (packages / "fc_plain.py").write_text(BOOM)
    assert is_module("fc_plain")
    assert "fc_plain" not in sys.modules


def test_of_a_module_in_a_package_only_the_package_is_imported(packages: Path) -> None:
    (packages / "fc_pack").mkdir()
    (packages / "fc_pack" / "__init__.py").write_text("")
    (packages / "fc_pack" / "hooks.py").write_text(BOOM)
    assert is_module("fc_pack.hooks")
    assert not is_module("fc_pack.none")


def test_a_module_that_is_not_there_is_none(packages: Path) -> None:
    assert not is_module("fc_nowhere")
    assert not is_module("fc_nowhere.hooks")
    assert not is_module("__main__")


def test_a_directory_without_code_is_none(packages: Path) -> None:
    (packages / "fc_folder").mkdir()
    assert not is_module("fc_folder")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import fc_missing_library", "ModuleNotFoundError: No module named 'fc_missing_library'"),
        ("def", "SyntaxError"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
    ],
)
def test_a_package_that_fails_to_import_is_named_with_its_reason(packages: Path, code: str, says: str) -> None:
    (packages / "fc_broken").mkdir()
    (packages / "fc_broken" / "__init__.py").write_text(code)
    (packages / "fc_broken" / "hooks.py").write_text("")
    with pytest.raises(BadArtifact, match=rf"fc_broken\.hooks: importing the package fc_broken failed with {says}"):
        is_module("fc_broken.hooks")
