"""The environments that were made: built apart, published by one rename, locked while a server uses them.

Each is a folder below ``environments`` in the cache, named by the digest of what it is made of. A folder of that name
is whole, whatever killed its builder: it got its name last.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forecastle.cluster.environments import installer, requirements
from forecastle.errors import InstallFailed
from forecastle.models.partial import partial_directory
from forecastle.models.progress import Progress, silent

logger = logging.getLogger(__name__)

FOLDER = "environments"
_RECORD = "forecastle.json"
_held: dict[Path, int] = {}
"""The descriptors that lock the environments that this process uses, until it ends."""


class Environment(msgspec.Struct, frozen=True):
    """One environment: where it lies, what it was made of, and when it was last used (seconds since the epoch)."""

    path: Path
    requirements: list[str]
    python: str
    size: int = 0
    used: float = 0.0
    in_use: bool = False


def interpreter(wanted: Sequence[str], runtime: str, *, cache: Path, origin: str, progress: Progress = silent) -> str:
    """Return the Python that has the wanted requirements: the server's own if it has them, else an environment's.

    ``origin`` names the model in messages. What the ``runtime`` needs is installed with them.

    Raises:
        InstallFailed: they cannot be installed; the message ends with what the installer said.
        SourceNotFound: a requirements file cannot be read.
        StartError: the cache cannot be written.
    """
    lines = [*wanted, *requirements.of_replica(runtime)]
    stated = requirements.expanded(wanted, origin)
    path = cache.absolute() / FOLDER / requirements.digest(lines, origin)
    if _satisfied_here(lines):
        return sys.executable
    for _ in range(3):  # whoever prunes may take it away between our look and our lock
        if not path.is_dir():
            _build(path, lines, stated, origin, progress)
        if _hold(path):
            os.utime(path)
            return str(path / "bin" / "python")
    raise InstallFailed(f"the environment of {origin} at {path} is removed as soon as it is made")


def _satisfied_here(lines: Sequence[str]) -> bool:
    """Say whether the server's own environment has all of it, without asking any index."""
    asking = ["pip", "install", "--dry-run", "--offline", "--no-index", "--python", sys.executable]
    found = installer.run([*asking, *_as_arguments(lines)])
    return found.code == 0 and "Would make no changes" in found.said


def _as_arguments(lines: Sequence[str]) -> list[str]:
    arguments: list[str] = []
    for line in lines:
        # "-r file" is an option and its value; anything else is one word, however many blanks it has.
        arguments += line.split(" ", 1) if line.startswith("-") else [line]
    return arguments


def _build(path: Path, lines: list[str], stated: list[str], origin: str, progress: Progress) -> None:
    activity = f"installing the requirements of {origin}"
    logger.info("%s into %s", activity, path)
    began = time.monotonic()
    progress(activity, 0, None)
    with partial_directory(path.parent) as partial:
        made = partial / "environment"
        _check(installer.run(["venv", "--quiet", "--relocatable", "--python", sys.executable, str(made)]), origin)
        install = ["pip", "install", "--python", str(made / "bin" / "python"), *_as_arguments(lines)]
        _check(installer.run(install, watch=lambda line: progress(f"{activity}: {line[:60]}", 0, None)), origin)
        _link(made)
        record = {"requirements": stated, "python": sys.version.split()[0]}
        (made / _RECORD).write_bytes(msgspec.json.encode(record))
        try:
            made.rename(path)
        except OSError:
            if not path.is_dir():  # else another process has made the same meanwhile
                raise
    logger.info("installed the requirements of %s in %.1f s", origin, time.monotonic() - began)


def _link(environment: Path) -> None:
    """Let the environment import our packages from where they lie, unless a requirement has brought its own."""
    (packages,) = environment.glob("lib/python*/site-packages")
    for name, place in requirements.linked().items():
        if not (packages / name).exists():
            (packages / name).symlink_to(place)


def _check(result: installer.Result, origin: str) -> None:
    if result.code != 0:
        raise InstallFailed(
            f"the requirements of {origin} could not be installed:\n{result.said or f'uv ended with {result.code}'}"
        )


def _hold(path: Path) -> bool:
    """Lock the environment against removal until this process ends; say whether it is still there."""
    if path in _held:
        return path.is_dir()
    try:
        lock = os.open(path / _RECORD, os.O_RDONLY)
    except FileNotFoundError:
        return False
    fcntl.flock(lock, fcntl.LOCK_SH)
    if not path.is_dir():
        os.close(lock)
        return False
    _held[path] = lock
    return True


def environments(cache: Path) -> list[Environment]:
    """Return what is there, the most recently used first."""
    found = []
    for path in (cache.absolute() / FOLDER).glob("*"):
        try:
            record = msgspec.json.decode((path / _RECORD).read_bytes())
            used = path.stat().st_mtime
        except OSError:
            continue
        found.append(Environment(path, record["requirements"], record["python"], _size(path), used, _in_use(path)))
    return sorted(found, key=lambda environment: -environment.used)


def remove(environment: Environment) -> bool:
    """Remove an environment, unless a server uses it; say whether it was removed."""
    with partial_directory(environment.path.parent) as partial, (environment.path / _RECORD).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        environment.path.rename(partial / "removed")  # from here on nobody finds it half removed
    return True


def _in_use(path: Path) -> bool:
    with (path / _RECORD).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _size(path: Path) -> int:
    """Return the bytes of its files, those that it shares with uv's own cache included."""
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())
