"""What goes into an archive: the files of a model and those given with it, put together in a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from forecastle.errors import SourceNotFound, UsageError
from forecastle.models.artifact import CODE, REQUIREMENTS, Artifact, descend, open_artifact
from forecastle.models.fetch import fetch
from forecastle.models.formats import HEAD, format_of
from forecastle.models.manifest import NAMES, hook_file
from forecastle.models.members import archive_format
from forecastle.models.mms import SIGNATURE, SYNSET
from forecastle.models.progress import Progress, silent
from forecastle.models.unpack import unpack

_LEFT_OUT = {"__pycache__", "__MACOSX"}
_READS = {
    SIGNATURE: {"mms archive", "onnx", "torchscript", "torch export"},
    SYNSET: {"mms archive", "onnx", "torchscript", "torch export", "keras", "saved model"},
}
"""The kinds of models beside which a file is read."""


PATIENCE = 120.0
"""How long in seconds a model may take to load."""


class Order(msgspec.Struct, frozen=True):
    """What to export, and where to.

    ``source`` is a path or URL of a model, ``target`` the archive to write. ``signature``, ``synset``, ``service`` and
    ``requirements`` are files for the archive, in the place of those that the source has; ``files`` are further ones.
    ``shapes`` are those of the inputs of an MMS archive without a signature. With ``check``, the model is loaded before
    anything is written, which may take ``patience`` seconds; where that needs a package that is not installed, a
    ``lenient`` order tries MXNet itself, and else goes without.
    """

    name: str
    source: str
    target: Path
    signature: Path | None = None
    synset: Path | None = None
    service: Path | None = None
    requirements: Path | None = None
    files: tuple[Path, ...] = ()
    shapes: Mapping[str, tuple[int | None, ...]] = {}
    force: bool = False
    check: bool = True
    patience: float = PATIENCE
    lenient: bool = False


class Gathered(msgspec.Struct, frozen=True):
    """The files of an archive by their names in it.

    ``source`` is what was fetched, ``folder`` the directory whose files these are, ``None`` for a file and what lies
    beside it. ``single`` is what a single file is; a directory is not recognised yet.
    """

    source: Path
    folder: Path | None
    files: dict[str, Path]
    single: Artifact | None = None


def gather(order: Order, target: Path, *, cache: Path, progress: Progress = silent) -> Gathered:
    """Find the files of an archive; the source is downloaded and unpacked below ``cache`` where that is needed.

    Raises:
        SourceNotFound: the source or a file that is given is not there, or cannot be read.
        StartError: the source cannot be unpacked, or is a file of no known kind.
    """
    try:
        found = _of_source(order.source, target, cache, progress)
    except OSError as error:
        raise SourceNotFound(f"{order.source} cannot be read: {error.strerror or error}") from None
    in_code = f"{CODE}/{REQUIREMENTS}"
    needs = in_code if in_code in found.files else REQUIREMENTS
    given = [(SIGNATURE, order.signature), (SYNSET, order.synset), (needs, order.requirements)]
    given += [(file.name, file) for file in (order.service, *order.files) if file is not None]
    for name, path in given:
        if path is not None:
            if not path.is_file():
                raise SourceNotFound(f"{path}: there is no such file")
            found.files[name] = path
    return found


def stage(files: Mapping[str, Path], folder: Path) -> None:
    """Put files together as the archive will hold them, so that a model is tried with them and with nothing else."""
    for name, path in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path.resolve(), place)
        except OSError:  # on another file system, or one that is not ours
            shutil.copyfile(path, place)


def _of_source(source: str, target: Path, cache: Path, progress: Progress) -> Gathered:
    path = fetch(source, cache=cache, progress=progress)
    if path.is_file() and not _is_archive(path, source):
        artifact = open_artifact(source, cache=cache, progress=progress)
        return Gathered(path, None, _beside(Path(artifact.path), artifact.kind), artifact)
    directory = descend(path if path.is_dir() else unpack(path, cache, origin=source, progress=progress))
    hooks = hook_file(directory, source)
    single = None if hooks is None else Artifact("hook file", "script", str(hooks), source)
    return Gathered(path, directory, collect(directory, target), single)


def _is_archive(path: Path, origin: str) -> bool:
    with path.open("rb") as file:
        return archive_format(file.read(HEAD)) is not None and format_of(path, origin) is None


def collect(directory: Path, target: Path) -> dict[str, Path]:
    """Return the files of a directory by their names in an archive, without hidden ones and old manifests.

    ``target`` is the archive to be written, which may lie in the directory and is no part of itself.
    """
    found: dict[str, Path] = {}
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
        for name in sorted(names):
            path = Path(folder, name)
            if name.startswith(".") or path.suffix == ".pyc" or not path.is_file() or path.absolute() == target:
                continue
            found[path.relative_to(directory).as_posix()] = path
    return {name: path for name, path in found.items() if name not in NAMES}


def _beside(path: Path, kind: str) -> dict[str, Path]:
    """Return a model's file, and those beside it that its runtime reads."""
    read = [name for name, kinds in _READS.items() if kind in kinds]
    return {each.name: each for each in (path, *(path.with_name(name) for name in read)) if each.is_file()}


def check_read(name: str, kind: str, origin: str) -> None:
    """Refuse a signature or labels beside a model of a kind that does not read them.

    Raises:
        UsageError: nothing would read the file.
    """
    if kind not in _READS[name]:
        option = "--signature" if name == SIGNATURE else "--synset"
        raise UsageError(f"{origin} is of the kind {kind!r}, which reads no {name}; leave {option} out")
