"""Downloads over HTTP, cached by what they contain.

::

    <cache>/urls/<sha256 of the URL>.json         what the server said last: entity tag, date, digest, size
    <cache>/files/<sha256 of the content>/<name>  the content, never changed once it is there

A file comes into being by one rename, so a cut connection, a full disk or a killed process leaves nothing that counts,
and two downloads of one URL do not meet: each renames a complete file to the place its content gives it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit

import msgspec

from forecastle.errors import BadArtifact, SourceNotFound, UsageError
from forecastle.models.partial import partial_directory
from forecastle.models.progress import Progress

# Seconds without a byte from the server, after which it counts as gone.
TIMEOUT = 30.0
# Of one download. Larger models exist; whoever has one can place it by hand.
MAX_BYTES = 16 << 30
_CHUNK = 1 << 18
_NAME = re.compile(r"[^A-Za-z0-9._-]")


class _Record(msgspec.Struct, frozen=True):
    """What is known of a URL since its last download."""

    digest: str
    name: str
    size: int
    etag: str = ""
    modified: str = ""


class _WebOnly(request.HTTPRedirectHandler):
    """Follows redirects to http and https alone, and never from https back to http."""

    def redirect_request(  # noqa: PLR0917 - the base class's arguments
        self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> request.Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme not in {"http", "https"} or (req.type == "https" and scheme == "http"):
            fp.close()
            raise SourceNotFound(f"{req.full_url}: the server redirects from {req.type} to {scheme}, which is refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> request.OpenerDirector:
    # Not build_opener: it would add the handlers of file:, ftp: and data:.
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        _WebOnly(),
    ):
        opener.add_handler(handler)
    return opener


def download(url: str, cache: Path, progress: Progress, *, limit: int = MAX_BYTES, timeout: float = TIMEOUT) -> Path:
    """The path of a file with what the URL holds now.

    The server is asked each time; when it says that nothing changed since the last download, that one is used. The
    file keeps the URL's last segment as its name. Safe to call from several threads and processes at once.

    Raises:
        UsageError: the URL holds a user name or has no host.
        SourceNotFound: the server cannot be reached or answers anything but 200.
        BadArtifact: the content is cut off, or larger than ``limit`` bytes.
        StartError: the cache cannot be written.
    """
    _check(url)
    note = cache / "urls" / f"{hashlib.sha256(url.encode()).hexdigest()}.json"
    known = _known(note, cache)
    with _answer(url, known, timeout) as response:
        if response is None:
            assert known is not None
            return _place(cache, known)
        with partial_directory(cache) as partial:
            record = _receive(response, url, partial / "content", progress, limit)
            goal = _place(cache, record)
            goal.parent.mkdir(parents=True, exist_ok=True)
            (partial / "content").replace(goal)
            (partial / "note").write_bytes(msgspec.json.encode(record))
            note.parent.mkdir(exist_ok=True)
            (partial / "note").replace(note)
    return goal


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url} is no URL: {error}") from None
    if "@" in parts.netloc:
        # The password stays out of the message, which ends in logs.
        raise UsageError("a URL with a user name or password in it is not supported; download the file first")
    if not host:
        raise UsageError(f"{url}: there is no host in this URL; expected http://HOST/PATH")


def _place(cache: Path, record: _Record) -> Path:
    return cache / "files" / record.digest / record.name


def _known(note: Path, cache: Path) -> _Record | None:
    """The last download of a URL, if its file is still there in full."""
    try:
        record = msgspec.json.decode(note.read_bytes(), type=_Record)
        complete = _place(cache, record).stat().st_size == record.size
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return record if complete else None


@contextmanager
def _answer(url: str, known: _Record | None, timeout: float) -> Iterator[HTTPResponse | None]:
    """The server's 200, or ``None`` when what is known still holds."""
    headers = {"User-Agent": "forecastle", "Accept": "*/*"}
    if known is not None and known.etag:
        headers["If-None-Match"] = known.etag
    elif known is not None and known.modified:
        headers["If-Modified-Since"] = known.modified
    response: HTTPResponse | None = None
    try:
        response = _opener().open(request.Request(url, headers=headers), timeout=timeout)  # noqa: S310
    except HTTPError as error:
        with error:
            if error.code != 304 or known is None:
                reason = " ".join(str(error.reason).split())
                raise SourceNotFound(f"{url}: the server answered {error.code} {reason}; expected 200") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = str(error.reason if isinstance(error, URLError) else error) or type(error).__name__
        raise SourceNotFound(f"{url}: cannot be reached: {reason}") from None
    if response is None:
        yield None
        return
    with response:
        if response.status != 200:
            raise SourceNotFound(f"{url}: the server answered {response.status} {response.reason}; expected 200")
        yield response


def _receive(response: HTTPResponse, url: str, path: Path, progress: Progress, limit: int) -> _Record:
    """Write the body to ``path``, all of it or none that anybody will use."""
    name = _file_name(url)
    declared = response.headers.get("Content-Length", "")
    total = int(declared) if declared.isdecimal() else None
    if encoding := response.headers.get("Content-Encoding"):
        raise SourceNotFound(f"{url}: the server sent it with Content-Encoding {encoding}, which was not asked for")
    digest = hashlib.sha256()
    size = 0
    with path.open("xb") as file:
        while chunk := _read(response, url):
            size += len(chunk)
            if size > limit:
                break
            file.write(chunk)
            digest.update(chunk)
            progress(f"downloading {name}", size, total)
        file.flush()
        os.fsync(file.fileno())
    if max(size, total or 0) > limit:
        raise BadArtifact(f"{url}: it is larger than {limit} bytes; download it by hand and give the file's path")
    # http.client takes an early end of the connection for the end of the body.
    if total is not None and size < total:
        raise BadArtifact(f"{url}: the connection ended after {size} of {total} bytes; start again")
    return _Record(
        digest=digest.hexdigest(),
        name=name,
        size=size,
        etag=response.headers.get("ETag", ""),
        modified=response.headers.get("Last-Modified", ""),
    )


def _read(response: HTTPResponse, url: str) -> bytes:
    try:
        return response.read(_CHUNK)
    except (OSError, HTTPException) as error:
        raise BadArtifact(f"{url}: the download was cut off: {str(error) or type(error).__name__}") from None


def _file_name(url: str) -> str:
    """The URL's last segment as a file name that is safe anywhere; its ending stays, for hook files need theirs."""
    segment = unquote(urlsplit(url).path.rpartition("/")[2])
    return _NAME.sub("_", segment).lstrip(".")[-120:] or "download"
