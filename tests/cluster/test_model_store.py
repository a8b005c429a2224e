from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from forecastle.cluster.model_store import Found, ModelStore
from forecastle.errors import BadInput, ModelNotFound, RequestError
from models.builders import make_zip
from models.test_mar import TORCHSERVE, mar


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    (root / "bare").mkdir(parents=True)
    (root / "bare" / "service.py").write_text("def handle(data, context): ...")
    (root / "notes.txt").write_text("no model")
    make_zip(root / "file.mar", mar())
    make_zip(root / "torch.mar", mar(TORCHSERVE, **{"needs.txt": b""}))
    return root


def find(root: Path, url: str, **more: str) -> Found:
    return asyncio.run(ModelStore(root, root.parent / "cache").find(url, **more))


def test_a_model_is_called_as_asked_or_as_it_says_or_after_its_file(root: Path) -> None:
    assert find(root, "file.mar") == (str(root / "file.mar"), "noop", "1")
    assert find(root, "torch.mar") == (str(root / "torch.mar"), "net", "2.1")
    assert find(root, "torch.mar", name="mine") == (str(root / "torch.mar"), "mine", "2.1")
    assert find(root, "bare", handler="service:handle") == (str(root / "bare"), "bare", "1")


def test_a_path_and_a_file_url_need_not_lie_in_the_store(root: Path, tmp_path: Path) -> None:
    elsewhere = make_zip(tmp_path / "elsewhere.mar", mar())
    assert find(root, str(elsewhere)).source == str(elsewhere)
    assert find(root, f"file://{elsewhere}").source == f"file://{elsewhere}"


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("missing.mar", ModelNotFound, "Model not found in model store: missing.mar; the store is .*, set by --model-"),
        ("/missing.mar", ModelNotFound, "Model not found in model store: /missing.mar"),
        ("../file.mar", ModelNotFound, r"Relative path is not allowed in url: \.\./file.mar"),
        ("bare/../file.mar", ModelNotFound, "Relative path is not allowed in url"),
        ("http://localhost:aaaa", ModelNotFound, "Invalid model url: http://localhost:aaaa"),
        ("http://localhost:1/x.mar", BadInput, "Failed to download model from: http://localhost:1/x.mar"),
        ("ftp://localhost/x.mar", BadInput, "ftp:// is not supported"),
        ("x" * 5000, ModelNotFound, "Model not found in model store: xxx"),
        ("/" + "x" * 5000, ModelNotFound, "Model not found in model store: /xxx"),
        ("\0", ModelNotFound, "Model not found in model store: "),
        ("/\0", ModelNotFound, "Model not found in model store: "),
        (".", BadInput, "expected an MMS archive"),
        ("notes.txt", BadInput, "is a file that begins with b'no model'"),
        ("bare", BadInput, r"holds service.py; expected an MMS archive"),
    ],
)
def test_what_is_no_model_is_told(root: Path, url: str, error: type[RequestError], message: str) -> None:
    with pytest.raises(error, match=message):
        find(root, url)


def test_a_handler_that_does_not_lie_there_makes_no_archive(root: Path) -> None:
    for handler in ("other:handle", "../service:handle", "/etc/service", ":"):
        with pytest.raises(BadInput, match=r"holds service\.py"):
            find(root, "bare", handler=handler)
