"""The manifest of an archive: what it is, and the digest of each of its files.

An MMS archive has ``MANIFEST.json``, with the fields of MMS 0.2 to 0.4 and ``Files``. Any other archive has
``forecastle.json``. Neither has a date, so that the same content makes the same archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from forecastle.errors import BadArtifact
from forecastle.models.mms import MANIFEST, SIGNATURE, MmsFiles

FILE = "forecastle.json"
NAMES = (MANIFEST, FILE)

_HOOK_FILE = "hook file"
_MMS_VERSION = 0.4
_KEPT = ("License", "Created-By", "Model-Archive-Description")
"""What an earlier manifest says that no file tells."""


class Entry(msgspec.Struct, frozen=True):
    """A file's SHA-256, in hexadecimal, and its size in bytes."""

    sha256: str
    size: int


class Manifest(msgspec.Struct, frozen=True):
    """``forecastle.json``: ``model`` is the file that the model is, empty where it is the whole directory."""

    name: str
    kind: str
    runtime: str
    model: str
    files: dict[str, Entry]
    format: int = 1


def digests(files: Mapping[str, Path]) -> dict[str, Entry]:
    """Return the entries of files, in the order of their names."""
    return {name: entry(path) for name, path in sorted(files.items()) if name not in NAMES}


def write(manifest: Manifest) -> bytes:
    """Return the content of ``forecastle.json``."""
    return _written(manifest)


def write_mms(
    name: str,
    files: MmsFiles,
    entries: Mapping[str, Entry],
    *,
    service: str,
    engine: float | None,
    before: Mapping[str, Any],
) -> bytes:
    """Return the content of ``MANIFEST.json``.

    ``service`` is the name of the service's file or empty, ``engine`` the version of MXNet that wrote the symbol, and
    ``before`` the manifest that the archive had, whose licence, author and description are kept.
    """
    described = {"Model-Archive-Description": name} | {key: before[key] for key in _KEPT if key in before}
    return _written(
        {
            "Model-Archive-Version": 0.2,
            "Model-Server": _MMS_VERSION,
            **described,
            "Engine": before.get("Engine", {}) if engine is None else {"MXNet": engine},
            "Model": {
                "Description": name,
                "Model-Format": "MXNet-Symbolic",
                "Model-Name": name,
                "Parameters": files.params.name,
                "Service": service,
                "Signature": SIGNATURE,
                "Symbol": files.symbol.name,
            },
            "Files": dict(entries),
        }
    )


def stated(directory: Path) -> dict[str, Entry]:
    """Return the digests that a directory's manifest states; none where it has no manifest, or one without them."""
    return _stated(directory / MANIFEST, "Files") or _stated(directory / FILE, "files")


def faults(directory: Path, files: Mapping[str, Path]) -> list[str]:
    """Say where the files of a directory differ from what its manifest states."""
    found = []
    entries = stated(directory)
    for name, wanted in entries.items():
        if name not in files:
            found.append(f"{name} is missing")
        elif entry(files[name]) != wanted:
            found.append(f"{name} is not the file whose digest the manifest has")
    extra = [name for name in files if entries and name not in entries and name not in NAMES]
    return [*found, *(f"{name} is not in the manifest" for name in extra)]


def hook_file(directory: Path, origin: str) -> Path | None:
    """Return the file of hooks that a directory's ``forecastle.json`` names as its model; ``None`` if it names none.

    Raises:
        BadArtifact: the file is not there.
    """
    try:
        manifest = msgspec.json.decode((directory / FILE).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if manifest.kind != _HOOK_FILE:
        return None
    path = directory / Path(manifest.model).name
    if not path.is_file():
        raise BadArtifact(f"{origin}: {FILE} names the hook file {manifest.model!r}, which is not there")
    return path


def _stated(path: Path, key: str) -> dict[str, Entry]:
    try:
        return msgspec.convert(msgspec.json.decode(path.read_bytes())[key], dict[str, Entry])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        return {}


def entry(path: Path) -> Entry:
    """Return the entry of one file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        size = 0
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    return Entry(digest.hexdigest(), size)


def _written(document: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
