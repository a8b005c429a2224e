"""The artifact: what a model is on disk, recognised by content."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from forecastle.errors import BadArtifact, SourceNotFound, UnknownArtifact, UsageError
from forecastle.models import mms
from forecastle.models.fetch import fetch, local_path
from forecastle.models.members import archive_format
from forecastle.models.module import is_module, looks_like_module
from forecastle.models.onnx_file import onnx_fault
from forecastle.models.pickles import is_pickle, is_skops
from forecastle.models.progress import Progress, silent
from forecastle.models.signature import parse_signature
from forecastle.models.unpack import unpack

EXPECTED = (
    "expected an MMS archive (.zip or .model with <prefix>-symbol.json, <prefix>-0000.params and signature.json) or "
    "its directory, an .onnx file or a directory with one, a scikit-learn model (.joblib, .pkl or .skops), a directory "
    "with code/inference.py, a hook file (.py), or an importable module"
)


CODE = "code"
"""The folder of a model's script, by SageMaker's convention; ``SAGEMAKER_PROGRAM`` names another file in it."""


class Artifact(msgspec.Struct, frozen=True):
    """A recognised artifact.

    ``kind`` says what was found (for messages), ``runtime`` which module of ``forecastle.runtimes`` serves it, ``path``
    where it lies: a directory, a file, or for the kind ``module`` a dotted module name. ``source`` is what the user
    typed. ``script`` is a file of hooks that lies with the model and overrides the runtime's, or empty.
    """

    kind: str
    runtime: str
    path: str
    source: str
    script: str = ""


def open_artifact(source: str, *, cache: Path, progress: Progress | None = None) -> Artifact:
    """Find out what ``source`` is; download and unpack it below ``cache`` where that is needed.

    | kind | runtime | path |
    | --- | --- | --- |
    | ``mms archive`` | ``mxnet`` | the directory with symbol, parameters and a valid signature.json |
    | ``onnx`` | ``onnx`` | the file, or the directory that holds exactly one (and perhaps signature.json, synset.txt) |
    | ``sklearn`` | ``sklearn`` | a file of skops, or of joblib or pickle |
    | ``hook file`` | ``script`` | the file |
    | ``script directory`` | ``script`` | a directory with ``code/inference.py`` and none of the models above |
    | ``module`` | ``script`` | the dotted name; the module itself is not imported |

    Paths are absolute. Blocks while it reads, downloads and unpacks. What exists as a path is taken as one, except that
    the name of an importable package means that package, though the working folder holds its directory.

    Raises:
        SourceNotFound: nothing lies there, or it cannot be read.
        UnknownArtifact: what lies there is none of these; the message says what was found and what was expected.
        BadArtifact: it is one, but broken, incomplete or unsafe.
        UsageError: the source is empty, or of a scheme we do not fetch from.
        StartError: the cache cannot be written.
    """
    if not source.strip():
        raise UsageError(f"the source of a model is empty; {EXPECTED}")
    cache = cache.absolute()
    try:
        if _is_module_first(source):
            return Artifact("module", "script", source, source)
        path = fetch(source, cache=cache, progress=progress)
        return _recognise(path, source, cache, progress or silent)
    except OSError as error:
        raise SourceNotFound(f"{source} cannot be read: {error.strerror or error}") from None


def _is_module_first(source: str) -> bool:
    if not looks_like_module(source):
        return False
    path = local_path(source)
    if path.exists() and not (path / "__init__.py").is_file():
        return False
    if is_module(source):
        return True
    if not path.exists():
        raise SourceNotFound(
            f"{source}: there is no file or directory at {path}, and no importable module of that name"
        )
    return False


def _recognise(path: Path, source: str, cache: Path, progress: Progress) -> Artifact:
    if path.is_dir():
        return _recognise_directory(path, source)
    if not path.is_file():
        raise UnknownArtifact(f"{source} is neither a file nor a directory; {EXPECTED}")
    with path.open("rb") as file:
        head = file.read(512)
    if is_skops(path) or is_pickle(head, path.name):
        return Artifact("sklearn", "sklearn", str(path), source)
    if archive_format(head):
        return _recognise_directory(unpack(path, cache, origin=source, progress=progress), source)
    if path.suffix == ".py":
        return Artifact("hook file", "script", str(path), source)
    fault = onnx_fault(path)
    if fault is None:
        _check_signature(path.with_name(mms.SIGNATURE), source)
        return Artifact("onnx", "onnx", str(path), source)
    if path.suffix == ".onnx":
        raise BadArtifact(f"{source} is no ONNX model: {fault}; it is {_describe(head)}")
    if mms.is_mms([path.name]):
        raise UnknownArtifact(
            f"{source} is one part of an MMS archive; give the archive, or the directory of its parts"
        )
    raise UnknownArtifact(f"{source} is {_describe(head)}; {EXPECTED}")


def _recognise_directory(directory: Path, source: str) -> Artifact:
    """Recognise the model in a directory, and the script with its hooks, in SageMaker's place for it."""
    directory = _descend(directory)
    program = directory / CODE / os.environ.get("SAGEMAKER_PROGRAM", "inference.py")
    script = str(program) if program.is_file() else ""
    found = _model_in(directory, source, script=bool(script))
    return msgspec.structs.replace(found, script=script)


def _model_in(directory: Path, source: str, *, script: bool) -> Artifact:
    entries = _entries(directory)
    names = [entry.name for entry in entries if entry.is_file()]
    models = [name for name in names if name.endswith(".onnx")]
    if mms.is_mms(names) or (mms.SIGNATURE in names and not models):
        if models:
            raise BadArtifact(f"{source} holds both MXNet and ONNX files ({mms.listing(names)}); expected one model")
        files = mms.find_files(directory, source)
        _check_signature(files.signature, source)
        return Artifact("mms archive", "mxnet", str(directory), source)
    if len(models) > 1:
        raise BadArtifact(f"{source} holds {len(models)} ONNX files ({mms.listing(models)}); expected exactly one")
    if models:
        if fault := onnx_fault(directory / models[0]):
            raise BadArtifact(f"{source}: {models[0]} is no ONNX model: {fault}")
        _check_signature(directory / mms.SIGNATURE, source)
        return Artifact("onnx", "onnx", str(directory), source)
    if script:
        return Artifact("script directory", "script", str(directory), source)
    found = mms.listing(entry.name + "/" * entry.is_dir() for entry in entries)
    raise UnknownArtifact(f"{source} holds {found}; {EXPECTED}")


def _descend(directory: Path) -> Path:
    """The only folder in a directory of nothing else, since many archives are packed with their folder around them."""
    entries = _entries(directory)
    only = entries[0] if len(entries) == 1 else directory
    return only if only.is_dir() and only.name != CODE else directory


def _entries(directory: Path) -> list[Path]:
    """What a directory holds, without what file managers leave behind."""
    return sorted(path for path in directory.iterdir() if path.name != "__MACOSX" and not path.name.startswith("."))


def _check_signature(path: Path, source: str) -> None:
    """A wrong signature ends the start here, before any replica."""
    if path.is_file():
        parse_signature(path.read_bytes(), f"{mms.SIGNATURE} of {source}")


def _describe(head: bytes) -> str:
    return f"a file that begins with {head[:16]!r}" if head else "an empty file"
