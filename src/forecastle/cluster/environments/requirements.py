"""What an environment is made of: requirement lines as pip knows them, and what a replica itself needs."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from forecastle.errors import SourceNotFound

OWN = ("msgspec", "pluggy", "werkzeug")
"""What every replica imports besides Forecastle."""

LINKED = ("forecastle", "inference_server", "mms", "ts", "clipper_admin")
"""The packages that an environment borrows from the server's: ours, which must be the same at both ends of a link."""

_FILE = re.compile(r"(?:-r|-c|--requirement|--constraint)[ =]\s*(.+)")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_DEEPEST = 10


def of_replica(runtime: str) -> list[str]:
    """Return the requirements of a replica of this runtime: its own, and those of the extra of the runtime's name."""
    wanted = []
    for line in importlib.metadata.requires("forecastle") or []:
        requirement, _, marker = line.partition(";")
        name = _NAME.match(requirement)
        extra = re.search(r"extra == ['\"]([^'\"]+)['\"]", marker)
        if extra[1] == runtime if extra else name is not None and name[0] in OWN:
            wanted.append(requirement.strip())
    return wanted


def linked() -> dict[str, Path]:
    """Return the packages that an environment borrows, by name, as far as they are installed here."""
    found = {}
    for name in LINKED:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found[name] = Path(spec.origin).parent
    return found


def digest(lines: Iterable[str], origin: str) -> str:
    """Return a digest of requirement lines, the files they include, this Python, and where Forecastle lies.

    Raises:
        SourceNotFound: a file that they include cannot be read.
    """
    hashed = hashlib.sha256()
    for text in (sys.version, sys.base_prefix, *map(str, linked().values()), *expanded(lines, origin)):
        hashed.update(text.encode() + b"\0")
    return hashed.hexdigest()[:24]


def expanded(lines: Iterable[str], origin: str) -> list[str]:
    """Return the lines without comments, and in the place of a file that one includes the file's.

    Raises:
        SourceNotFound: a file cannot be read.
    """
    return list(_expanded(lines, origin, _DEEPEST))


def _expanded(lines: Iterable[str], origin: str, depth: int) -> Iterator[str]:
    for line in lines:
        text = line.partition(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        included = _FILE.match(text)
        if included is None:
            yield text
            continue
        path = Path(included[1])
        if depth == 0:
            raise SourceNotFound(f"{origin}: requirement files include one another more than {_DEEPEST} deep")
        try:
            content = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SourceNotFound(f"{origin}: the requirements {path} cannot be read: {reason}") from None
        constraint = "-c " if text.startswith(("-c", "--constraint")) else ""
        inner = [_beside(line, path.parent) for line in content.replace("\\\n", " ").splitlines()]
        yield from (f"{constraint}{found}" for found in _expanded(inner, origin, depth - 1))


def _beside(line: str, folder: Path) -> str:
    """Take a file that a line includes from where the including file lies."""
    included = _FILE.match(line.strip())
    if included is None:
        return line
    return f"{line.strip().split(included[1])[0]}{folder / included[1].partition(' #')[0].strip()}"
