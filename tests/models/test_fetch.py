from __future__ import annotations

from pathlib import Path

import pytest

from forecastle.errors import SourceNotFound, UsageError
from forecastle.models.fetch import fetch
from models.web import Site


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, also the home, with a model in it."""
    (tmp_path / "models" / "resnet 18").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "source",
    [
        "models/resnet 18",
        "./models/resnet 18",
        "models/../models/resnet 18/",
        "~/models/resnet 18",
        "{home}/models/resnet 18",
        "file://models/resnet 18",
        "file://models/resnet%2018",
        "file://./models/resnet%2018",
        "file://~/models/resnet%2018",
        "file://{home}/models/resnet 18",
        "file://localhost{home}/models/resnet 18",
        "FILE://models/resnet 18",
    ],
)
def test_a_path_is_found_however_it_is_written(home: Path, source: str) -> None:
    found = fetch(source.format(home=home), cache=home / "cache")
    assert found.is_absolute()
    assert found.samefile(home / "models" / "resnet 18")
    assert not (home / "cache").exists()


@pytest.mark.parametrize("source", ["models/vgg.zip", "file://models/vgg.zip"])
def test_a_missing_path_is_named_as_typed_and_as_looked_for(home: Path, source: str) -> None:
    with pytest.raises(SourceNotFound, match="there is no file or directory at") as caught:
        fetch(source, cache=home / "cache")
    assert source in caught.value.message
    assert str(home / "models" / "vgg.zip") in caught.value.message


@pytest.mark.parametrize("source", ["models/" + "x" * 5000, "a\0b", "~nobody-of-this-name/x"])
def test_a_path_that_cannot_exist_is_missing(home: Path, source: str) -> None:
    with pytest.raises(SourceNotFound, match="there is no file or directory at"):
        fetch(source, cache=home / "cache")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("s3://bucket", "s3://bucket names no object; expected s3://BUCKET/KEY"),
        ("S3://bucket/", "names no object"),
        ("gs://bucket/model.zip", "gs:// is not supported; download it first"),
        ("ftp://host/model.zip", "ftp:// is not supported"),
    ],
)
def test_a_scheme_we_do_not_fetch_is_refused_with_what_to_do(home: Path, source: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        fetch(source, cache=home / "cache")
    assert source in caught.value.message


def test_a_url_is_downloaded_into_the_cache(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = fetch(site.put("/m.zip", b"x"), cache=Path("cache"))
    assert tmp_path / "cache" in found.parents
    assert found.read_bytes() == b"x"
