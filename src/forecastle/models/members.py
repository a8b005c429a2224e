"""What lies in an archive: the members of a zip or tar, each checked before a byte of it is used.

A member is a regular file or a directory with a relative name; links, devices and encrypted members are refused, as is
every name that could lead out of the folder it is unpacked into, on this or another operating system.
"""

from __future__ import annotations

import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Literal, NamedTuple

from forecastle.errors import BadArtifact

_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_COMPRESSED_MAGIC = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_TAR_MAGIC = b"ustar"
_TAR_MAGIC_AT = 257
_ENCRYPTED = 0x1
_DRIVE = re.compile(r"[A-Za-z]:")
_LONGEST = 255  # bytes of one name, on all common file systems
# All that the standard library's readers raise over broken archives; each was met, most with mutated ones.
_CORRUPT = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    IndexError,
    OverflowError,
    RuntimeError,
)
_PADDING = 1 << 20


class Member(NamedTuple):
    """One file or directory; ``parts`` is its checked name, ``open`` is ``None`` for a directory."""

    parts: tuple[str, ...]
    size: int
    open: Callable[[], IO[bytes]] | None


def archive_format(head: bytes) -> Literal["zip", "tar"] | None:
    """Which archive begins like this; ``head`` is the file's first 512 bytes. A compressed file counts as a tar."""
    if head.startswith(_ZIP_MAGIC):
        return "zip"
    if head.startswith(_COMPRESSED_MAGIC) or head[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
        return "tar"
    return None


def members(file: IO[bytes], format_: Literal["zip", "tar"], origin: str) -> Iterator[Member]:
    """The members in the archive's order; ``origin`` names the archive in messages.

    Raises:
        BadArtifact: a member is unsafe, or the archive is truncated or corrupt; possibly after some members.
    """
    return _zip_members(file, origin) if format_ == "zip" else _tar_members(file, origin)


@contextmanager
def corruption(origin: str, format_: str) -> Iterator[None]:
    """Turns what a reader raises over broken bytes into a ``BadArtifact``; only reads of the archive go inside."""
    try:
        yield
    except _CORRUPT as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadArtifact(f"{origin} is a truncated or corrupt {format_} archive: {reason}") from None


def safe_parts(name: str, origin: str) -> tuple[str, ...]:
    """The parts of a member's name, without the ``.`` ones.

    Raises:
        BadArtifact: the name is absolute, climbs with ``..``, or is no name on some operating system.
    """
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    fault = ""
    if name.startswith("/") or _DRIVE.match(name):
        fault = "has an absolute name"
    elif "\\" in name:
        fault = "has a backslash in its name"
    elif ".." in parts:
        fault = "has .. in its name"
    elif any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in name):
        fault = "has a name with unprintable characters"
    elif any(len(part.encode()) > _LONGEST for part in parts):
        fault = f"has a name longer than {_LONGEST} bytes"
    if fault:
        raise _unsafe(origin, name, fault)
    return parts


def _zip_members(file: IO[bytes], origin: str) -> Iterator[Member]:
    with corruption(origin, "zip"):
        archive = zipfile.ZipFile(file)
    with archive:
        for info in archive.infolist():
            # The name as it is written: zipfile's own ends at a zero byte.
            parts = safe_parts(info.orig_filename, origin)
            type_ = stat.S_IFMT(info.external_attr >> 16)
            if type_ not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _unsafe(origin, info.filename, "is a link or a special file")
            if info.flag_bits & _ENCRYPTED:
                raise _unsafe(origin, info.filename, "is encrypted")
            if info.is_dir():
                yield Member(parts, 0, None)
            else:
                yield Member(parts, info.file_size, lambda info=info: archive.open(info))  # type: ignore[misc]


def _tar_members(file: IO[bytes], origin: str) -> Iterator[Member]:
    with corruption(origin, "tar"):
        archive = tarfile.open(fileobj=file, mode="r:*")  # noqa: SIM115 - closed below
    with archive:
        while True:
            with corruption(origin, "tar"):
                info = archive.next()
            if info is None:
                break
            parts = safe_parts(info.name, origin)
            if info.isdir():
                yield Member(parts, 0, None)
            elif info.isreg():
                yield Member(parts, info.size, lambda info=info: _tar_open(archive, info))  # type: ignore[misc]
            else:
                raise _unsafe(origin, info.name, "is a link or a special file")
        _require_end_block(archive, origin)


def _tar_open(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    stream = archive.extractfile(info)
    assert stream is not None, "a regular file has content"
    return stream


def _require_end_block(archive: tarfile.TarFile, origin: str) -> None:
    """A tar ends with a block of zeros; tarfile takes a cut or broken header for the end as well."""
    with corruption(origin, "tar"):
        assert archive.fileobj is not None
        archive.fileobj.seek(archive.offset)
        if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise EOFError("its end is missing")
        # Only at its end does a compressed file tell whether all of it was right.
        archive.fileobj.read(_PADDING)


def _unsafe(origin: str, name: str, fault: str) -> BadArtifact:
    return BadArtifact(f"{origin} is not safe to unpack: its member {name!r} {fault}")
