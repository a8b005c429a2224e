"""S3 by its real client, against a server of ours that speaks the little of it that a download needs."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact, SourceNotFound, UsageError
from forecastle.models.fetch import fetch
from forecastle.models.progress import silent
from forecastle.models.s3 import download_s3
from models.web import Site, send


@pytest.fixture
def bucket(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Site:
    for variable in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", site.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "one")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "two")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    return site


def put(site: Site, key: str, body: bytes, tag: str) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        head = handler.command == "HEAD"
        send(handler, 200, {"ETag": f'"{tag}"', "Content-Length": str(len(body))}, b"" if head else body)

    site.answer(f"/models/{key}", answer)


def test_an_object_is_fetched_once_and_again_when_it_has_changed(bucket: Site, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    put(bucket, "a/resnet%2018.zip", b"first", "1")
    path = download_s3("s3://models/a/resnet%2018.zip", tmp_path, lambda *step: seen.append(step))
    assert (path.name, path.read_bytes()) == ("resnet 18.zip", b"first")
    assert seen[-1] == ("downloading resnet 18.zip", 5, 5)
    seen.clear()
    assert download_s3("s3://models/a/resnet%2018.zip", tmp_path, lambda *step: seen.append(step)) == path
    assert seen == []
    put(bucket, "a/resnet%2018.zip", b"second", "2")
    assert fetch("s3://models/a/resnet%2018.zip", cache=tmp_path).read_bytes() == b"second"
    assert path.read_bytes() == b"first"


def test_what_is_not_there_or_too_large_is_said(bucket: Site, tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"s3://models/gone\.zip cannot be read: .*404"):
        download_s3("s3://models/gone.zip", tmp_path, silent)
    put(bucket, "big.zip", b"12345", "1")
    with pytest.raises(BadArtifact, match="it is larger than 4 bytes"):
        download_s3("s3://models/big.zip", tmp_path, silent, limit=4)


def test_without_credentials_the_client_says_so(bucket: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    put(bucket, "a.zip", b"", "1")
    with pytest.raises(SourceNotFound, match="Unable to locate credentials"):
        download_s3("s3://models/a.zip", tmp_path, silent)


def test_without_the_client_the_extra_that_brings_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("boto3", "boto3.session"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"needs the package 'boto3': pip install 'forecastle\[s3\]'; or .*aws s3 cp"):
        download_s3("s3://models/a.zip", tmp_path, silent)
