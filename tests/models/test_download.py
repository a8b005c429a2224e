from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable
from email.message import Message
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.request import Request

import pytest

from forecastle.errors import BadArtifact, SourceNotFound, StartError, UsageError
from forecastle.models.download import _WebOnly, download
from forecastle.models.progress import silent
from models.web import Site, send

BODY = bytes(range(256)) * 3000


def get(url: str, cache: Path) -> bytes:
    return download(url, cache, silent).read_bytes()


def files(cache: Path) -> list[Path]:
    """Everything below the cache that counts as a download, finished or not."""
    return sorted(path for path in cache.rglob("*") if path.is_file()) if cache.exists() else []


def test_a_file_is_downloaded_under_its_own_name(site: Site, tmp_path: Path) -> None:
    path = download(site.put("/models/resnet-18.zip", BODY), tmp_path, silent)
    assert path.name == "resnet-18.zip"
    assert path.read_bytes() == BODY


@pytest.mark.parametrize(
    ("path", "name"),
    [("/shipping.py?token=a/b", "shipping.py"), ("/", "download"), ("/a%2F..%2Fb c", "a_.._b_c"), ("/..", "download")],
)
def test_the_name_is_made_safe(site: Site, tmp_path: Path, path: str, name: str) -> None:
    site.put(path.partition("?")[0].replace(" ", "%20"), BODY)
    found = download(site.url + path.replace(" ", "%20"), tmp_path, silent)
    assert found.name == name
    assert tmp_path in found.resolve().parents


def test_what_did_not_change_is_not_sent_again(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.zip", BODY, etag='"v1"')
    first = download(url, tmp_path, silent)
    inode = first.stat().st_ino
    assert download(url, tmp_path, silent) == first
    assert first.stat().st_ino == inode
    assert [headers.get("if-none-match") for _, headers in site.requests] == [None, '"v1"']


def test_a_date_serves_where_there_is_no_entity_tag(site: Site, tmp_path: Path) -> None:
    date = "Sat, 28 Nov 2026 10:00:00 GMT"
    url = site.put("/m.zip", BODY, modified=date)
    assert get(url, tmp_path) == get(url, tmp_path) == BODY
    assert [headers.get("if-modified-since") for _, headers in site.requests] == [None, date]


def test_what_changed_is_downloaded_anew(site: Site, tmp_path: Path) -> None:
    first = download(site.put("/m.zip", b"old", etag='"1"'), tmp_path, silent)
    assert get(site.put("/m.zip", b"new", etag='"2"'), tmp_path) == b"new"
    assert first.read_bytes() == b"old", "a server that runs on the old model keeps it"
    assert get(site.url + "/m.zip", tmp_path) == b"new"
    assert site.requests[-1][1]["if-none-match"] == '"2"'


def test_without_tag_and_date_the_content_decides(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.zip", b"same")
    assert download(url, tmp_path, silent) == download(url, tmp_path, silent)
    site.put("/m.zip", b"else")
    assert get(url, tmp_path) == b"else"


def test_two_urls_with_one_content_share_its_file(site: Site, tmp_path: Path) -> None:
    first = download(site.put("/a/m.zip", BODY), tmp_path, silent)
    assert download(site.put("/b/m.zip", BODY), tmp_path, silent) == first


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"half")])
def test_a_cached_file_that_is_gone_or_cut_is_downloaded_again(
    site: Site, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    url = site.put("/m.zip", BODY, etag='"1"')
    damage(download(url, tmp_path, silent))
    assert get(url, tmp_path) == BODY
    assert "if-none-match" not in site.requests[-1][1]


def test_a_broken_note_of_the_cache_is_no_obstacle(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.zip", BODY, etag='"1"')
    download(url, tmp_path, silent)
    (note,) = (tmp_path / "urls").iterdir()
    note.write_bytes(b'{"digest": "\xff')
    assert get(url, tmp_path) == BODY


@pytest.mark.parametrize("status", [204, 400, 401, 403, 404, 410, 500, 503])
def test_any_other_status_is_told(site: Site, tmp_path: Path, status: int) -> None:
    url = site.put("/m.zip", b"", status=status)
    with pytest.raises(SourceNotFound, match=rf"/m\.zip: the server answered {status} .*; expected 200"):
        download(url, tmp_path, silent)
    assert files(tmp_path) == []


def test_a_304_that_nobody_asked_for_is_no_model(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="answered 304"):
        download(site.put("/m.zip", b"", status=304), tmp_path, silent)


def test_a_redirect_is_followed_and_the_name_stays(site: Site, tmp_path: Path) -> None:
    site.put("/store/0af3", BODY)
    path = download(site.redirect("/hooks.py", "/store/0af3"), tmp_path, silent)
    assert (path.name, path.read_bytes()) == ("hooks.py", BODY)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "FILE:///etc/passwd"])
def test_a_redirect_away_from_the_web_is_refused(site: Site, tmp_path: Path, location: str) -> None:
    with pytest.raises(SourceNotFound, match=r"not allowed|which is refused"):
        download(site.redirect("/m.zip", location), tmp_path, silent)
    assert files(tmp_path) == []


def test_a_redirect_from_https_to_http_is_refused() -> None:
    request = Request("https://host/a")
    with pytest.raises(SourceNotFound, match="redirects from https to http, which is refused"):
        _WebOnly().redirect_request(request, io.BytesIO(), 302, "Found", HTTPMessage(), "http://host/a")
    assert isinstance(HTTPMessage(), Message)


def test_redirects_in_a_circle_end(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"answered 302 .*infinite loop"):
        download(site.redirect("/a", "/a"), tmp_path, silent)


def test_a_download_that_is_cut_off_leaves_nothing(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.zip", BODY, Content_Length=str(len(BODY) + 1))
    with pytest.raises(BadArtifact, match=rf"ended after {len(BODY)} of {len(BODY) + 1} bytes; start again"):
        download(url, tmp_path, silent)
    assert files(tmp_path) == []


def test_a_chunked_download_that_is_cut_off_leaves_nothing(site: Site, tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.protocol_version = "HTTP/1.1"
        send(handler, 200, {"Transfer-Encoding": "chunked", "Connection": "close"}, b"5\r\nhello\r\n5\r\nwor")

    with pytest.raises(BadArtifact, match="the download was cut off: IncompleteRead"):
        download(site.answer("/m.zip", answer), tmp_path, silent)
    assert files(tmp_path) == []


def test_a_failed_download_leaves_the_cached_one_in_use(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.zip", BODY, etag='"1"')
    download(url, tmp_path, silent)
    site.put("/m.zip", b"new", etag='"2"', Content_Length="9")
    with pytest.raises(BadArtifact, match="ended after 3 of 9"):
        download(url, tmp_path, silent)
    site.put("/m.zip", BODY, etag='"1"')
    assert get(url, tmp_path) == BODY
    assert site.requests[-1][1]["if-none-match"] == '"1"'


@pytest.mark.parametrize("declared", [True, False])
def test_a_download_over_the_limit_is_refused(site: Site, tmp_path: Path, declared: bool) -> None:
    url = site.put("/m.zip", BODY, Content_Length=str(len(BODY)) if declared else "")
    with pytest.raises(BadArtifact, match="is larger than 1000 bytes; download it by hand"):
        download(url, tmp_path, silent, limit=1000)
    assert files(tmp_path) == []
    assert download(url, tmp_path, silent, limit=len(BODY)).read_bytes() == BODY


def test_a_server_that_says_nothing_is_given_up(site: Site, tmp_path: Path) -> None:
    over = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        over.wait()

    try:
        with pytest.raises(SourceNotFound, match="cannot be reached: timed out"):
            download(site.answer("/m.zip", answer), tmp_path, silent, timeout=0.05)
    finally:
        over.set()


def test_a_server_that_stops_in_the_middle_is_given_up(site: Site, tmp_path: Path) -> None:
    over = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, {"Content-Length": "10"}, b"hello")
        handler.wfile.flush()
        over.wait()

    try:
        with pytest.raises(BadArtifact, match="the download was cut off: timed out"):
            download(site.answer("/m.zip", answer), tmp_path, silent, timeout=0.05)
    finally:
        over.set()
    assert files(tmp_path) == []


def test_a_port_where_nobody_listens_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as bound:  # bound but not listening: nobody else gets the port meanwhile
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(SourceNotFound, match=r"cannot be reached: .*refused"):
            download(f"http://127.0.0.1:{bound.getsockname()[1]}/m.zip", tmp_path, silent)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://", "no host in this URL"),
        ("http:///m.zip", "no host in this URL"),
        ("http://[::1/m.zip", "is no URL"),
        ("http://host:aaaa/m.zip", "is no URL"),
    ],
)
def test_a_wrong_url_is_refused_by_name(tmp_path: Path, url: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        download(url, tmp_path, silent)
    assert url in caught.value.message


def test_a_url_with_a_space_is_refused(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="can't contain control characters"):
        download(f"{site.url}/my model.zip", tmp_path, silent)


def test_a_password_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="user name or password") as caught:
        download("http://me:secret@host/m.zip", tmp_path, silent)
    assert "secret" not in caught.value.message


def test_a_content_encoding_is_refused(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="Content-Encoding gzip"):
        download(site.put("/m.zip", BODY, Content_Encoding="gzip"), tmp_path, silent)


def test_progress_counts_up_to_the_size(site: Site, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int | None]] = []

    def progress(activity: str, done: int, total: int | None) -> None:
        calls.append((activity, done, total))

    download(site.put("/m.zip", BODY), tmp_path, progress)
    assert calls[-1] == ("downloading m.zip", len(BODY), len(BODY))
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)
    download(site.put("/n.zip", BODY, Content_Length=""), tmp_path, progress)
    assert calls.pop() == ("downloading n.zip", len(BODY), None)


def test_downloads_of_one_url_at_once_do_not_meet(site: Site, tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, {"Content-Length": str(len(BODY))}, BODY[:1000])
        handler.wfile.flush()
        together.wait()  # all six are in the middle of the file
        handler.wfile.write(BODY[1000:])

    url = site.answer("/m.zip", answer)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(download(url, tmp_path, silent))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert {path.read_bytes() for path in found} == {BODY}
    assert len(files(tmp_path)) == 2, "one content and one note"


def test_a_cache_that_cannot_be_written_is_named(site: Site, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file in its place")
    with pytest.raises(StartError, match=r"cannot write under .*cache"):
        download(site.put("/m.zip", BODY), tmp_path / "cache", silent)
