"""From what the user typed to a path on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from forecastle.errors import SourceNotFound, UsageError
from forecastle.models.download import download
from forecastle.models.progress import Progress, silent
from forecastle.models.s3 import download_s3

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def fetch(source: str, *, cache: Path, progress: Progress | None = None) -> Path:
    """The absolute path of the file or directory that ``source`` names; it exists.

    A source is a path (``~`` is the home folder), ``file://`` before an absolute or relative path, or an ``http(s)://``
    or ``s3://`` URL, which is downloaded into ``cache``.

    Raises:
        SourceNotFound: nothing lies there, or the server does not hand it out.
        UsageError: the scheme is one we do not fetch from.
        BadArtifact: the download is cut off or too large.
        StartError: the cache cannot be written.
    """
    match = _SCHEME.match(source)
    scheme = match[1].lower() if match else ""
    if scheme in {"http", "https"}:
        return download(source, cache.absolute() / "downloads", progress or silent)
    if scheme == "s3":
        return download_s3(source, cache.absolute() / "downloads", progress or silent)
    if scheme not in {"", "file"}:
        raise UsageError(
            f"{source}: {scheme}:// is not supported; download it first, with its own tool, and give the file's path, "
            "or give an http://, https:// or s3:// URL"
        )
    path = local_path(source)
    try:
        path.stat()
    except (OSError, ValueError) as error:
        reason = "" if isinstance(error, FileNotFoundError) else f" ({getattr(error, 'strerror', error)})"
        raise SourceNotFound(f"{source}: there is no file or directory at {path}{reason}") from None
    return path


def local_path(source: str) -> Path:
    """The absolute path that a plain path or a ``file://`` URL means, whether something lies there or not.

    ``file:///a`` and ``file://localhost/a`` are absolute; ``file://models/a`` is ``models/a`` below the working folder,
    as the users of MMS write it.
    """
    if source[:7].lower() == "file://":
        rest = source[7:]
        source = unquote(rest.removeprefix("localhost") if rest.startswith("localhost/") else rest)
    try:
        return Path(source).expanduser().absolute()
    except RuntimeError:  # ~nobody: there is no such user, so it is a name like any other
        return Path(source).absolute()
