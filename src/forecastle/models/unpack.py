"""Unpacking an archive into the cache, wholly or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO, Literal

import msgspec

from forecastle.errors import BadArtifact, SourceNotFound
from forecastle.models.members import Member, archive_format, corruption, members
from forecastle.models.partial import partial_directory
from forecastle.models.progress import Progress, silent

_CHUNK = 1 << 20


class Limits(msgspec.Struct, frozen=True):
    """What an archive may hold at most: ``members`` files and directories, ``size`` bytes once unpacked."""

    members: int = 10_000
    size: int = 8 << 30


def unpack(
    archive: Path, cache: Path, *, origin: str | None = None, limits: Limits | None = None, progress: Progress = silent
) -> Path:
    """The directory with the archive's content, below ``cache`` and named by the archive's SHA-256.

    An archive that was unpacked before is not unpacked again. The directory comes into being by one rename after its
    last byte is on disk; several processes may unpack the same archive at once. Files get fresh permissions and dates.
    ``origin`` names the archive in messages and is its path by default.

    Raises:
        SourceNotFound: the archive cannot be read.
        BadArtifact: it is truncated, corrupt, unsafe or over the limits.
        StartError: the cache cannot be written.
    """
    origin = origin or str(archive)
    try:
        file = archive.open("rb")
    except OSError as error:
        raise SourceNotFound(f"{archive} cannot be read: {error.strerror}") from None
    with file:
        before = _stamp(file)
        format_ = archive_format(file.read(512))
        if format_ is None:
            raise BadArtifact(f"{origin} is neither a zip nor a tar archive")
        target = cache / "unpacked" / _digest(file)
        if target.is_dir():
            return target
        with partial_directory(target.parent) as partial:
            content = partial / "content"
            content.mkdir()
            _Writer(content, origin, format_, limits or Limits(), progress).write_all(file)
            # The digest names what was read at first: content written over since then must not come to stand under it.
            if _stamp(file) != before:
                raise BadArtifact(f"{origin} changed while it was being unpacked; start again")
            _publish(content, target)
    return target


class _Writer:
    """Writes the members of one archive below one new directory, counting what it writes."""

    def __init__(
        self, directory: Path, origin: str, format_: Literal["zip", "tar"], limits: Limits, progress: Progress
    ) -> None:
        self._directory = directory
        self._origin = origin
        self._format: Literal["zip", "tar"] = format_
        self._limits = limits
        self._progress = progress
        self._written = 0

    def write_all(self, file: IO[bytes]) -> None:
        activity = f"unpacking {self._origin.rpartition('/')[2]}"
        total = os.fstat(file.fileno()).st_size
        file.seek(0)
        reached = 0
        for count, member in enumerate(members(file, self._format, self._origin), start=1):
            if count > self._limits.members:
                raise BadArtifact(f"{self._origin} holds more than {self._limits.members} members, the most we unpack")
            self._write(member)
            # How far the packed bytes are read, since a tar does not say how much it holds.
            reached = max(reached, file.tell())
            self._progress(activity, reached, total)

    def _write(self, member: Member) -> None:
        path = self._directory.joinpath(*member.parts)
        if member.open is None:
            self._make_directory(path, member)
            return
        # What it declares is checked first, to refuse early; what it really holds is what counts.
        self._require_room(member.size)
        self._make_directory(path.parent, member)
        with corruption(self._origin, self._format):
            stream = member.open()
        with stream, self._create(path, member) as file:
            while chunk := self._read(stream):
                self._require_room(len(chunk))
                self._written += len(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())

    def _require_room(self, size: int) -> None:
        if self._written + size > self._limits.size:
            raise BadArtifact(f"{self._origin} holds more than {self._limits.size} bytes, the most we unpack")

    def _read(self, stream: IO[bytes]) -> bytes:
        with corruption(self._origin, self._format):
            return stream.read(_CHUNK)

    def _make_directory(self, path: Path, member: Member) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise self._twice(member) from None

    def _create(self, path: Path, member: Member) -> IO[bytes]:
        # "x" asks the file system itself, which may not tell Model from model.
        try:
            return path.open("xb")
        except (FileExistsError, IsADirectoryError):
            raise self._twice(member) from None

    def _twice(self, member: Member) -> BadArtifact:
        return BadArtifact(f"{self._origin} is not safe to unpack: it holds {'/'.join(member.parts)!r} twice")


def _publish(content: Path, target: Path) -> None:
    try:
        content.rename(target)
    except OSError:
        # Another process has put the same content there; a directory with something in it is never replaced.
        if not target.is_dir():
            raise


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _stamp(file: IO[bytes]) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
