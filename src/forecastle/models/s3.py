"""Downloads from S3, by boto3, cached by their entity tag.

Credentials, region and endpoint are boto3's own business: its variables, files and roles hold.
"""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from forecastle.errors import BadArtifact, SourceNotFound, UsageError
from forecastle.models.partial import partial_directory
from forecastle.models.progress import Progress

MAX_BYTES = 16 << 30


def download_s3(url: str, cache: Path, progress: Progress, *, limit: int = MAX_BYTES) -> Path:
    """The path of a file with what ``s3://BUCKET/KEY`` holds now; one that has not changed is not fetched again.

    Raises:
        UsageError: boto3 is not installed, or the URL names no object.
        SourceNotFound: there is no such object, or it may not be read.
        BadArtifact: it is larger than ``limit`` bytes.
        StartError: the cache cannot be written.
    """
    parts = urlsplit(url)
    bucket, key = parts.netloc, unquote(parts.path.lstrip("/"))
    name = Path(key).name
    if not bucket or not name:
        raise UsageError(f"{url} names no object; expected s3://BUCKET/KEY")
    client, failures = _client(url)
    try:
        head = client.head_object(Bucket=bucket, Key=key)
        size, tag = int(head["ContentLength"]), str(head["ETag"])
        if size > limit:
            raise BadArtifact(f"{url}: it is larger than {limit} bytes; download it by hand and give the file's path")
        goal = cache / "s3" / hashlib.sha256(f"{url} {tag}".encode()).hexdigest() / name
        if goal.is_file():
            return goal
        with partial_directory(cache) as partial:
            done = 0

            def more(count: int) -> None:
                nonlocal done
                done += count
                progress(f"downloading {name}", done, size)

            client.download_file(bucket, key, str(partial / "content"), Callback=more)
            goal.parent.mkdir(parents=True, exist_ok=True)
            (partial / "content").replace(goal)
    except failures as error:
        raise SourceNotFound(f"{url} cannot be read: {' '.join(str(error).split())}") from None
    return goal


def _client(url: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """A client of S3, and what it raises."""
    try:
        sessions = importlib.import_module("boto3.session")
        exceptions = importlib.import_module("botocore.exceptions")
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise UsageError(
            f"{url}: s3:// needs the package {package!r}: pip install 'forecastle[s3]'; or download the file first "
            f"(aws s3 cp {url} .) and give its path"
        ) from None
    failures = (exceptions.BotoCoreError, exceptions.ClientError)
    try:
        # A session of its own: the library's default one is not made for several threads.
        return sessions.Session().client("s3"), failures
    except failures as error:
        raise SourceNotFound(f"{url} cannot be read: {error}") from None
