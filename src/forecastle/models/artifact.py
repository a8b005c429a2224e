"""The artifact: what a model is on disk, recognised by content."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from forecastle.errors import BadArtifact, SourceNotFound, UnknownArtifact, UsageError
from forecastle.models import manifest, mar, mms
from forecastle.models.fetch import fetch, local_path
from forecastle.models.formats import HEAD, SAVED_MODEL, Format, described, format_of
from forecastle.models.members import archive_format
from forecastle.models.module import is_module, looks_like_module
from forecastle.models.progress import Progress, silent
from forecastle.models.services import packed_service
from forecastle.models.signature import parse_signature
from forecastle.models.unpack import unpack

EXPECTED = (
    "expected an MMS archive (.zip or .model with <prefix>-symbol.json, <prefix>-0000.params and signature.json) or "
    "its directory, a .mar of MMS or TorchServe, a model file (.onnx, .joblib, .pkl, .skops, XGBoost's .json or .ubj, "
    "LightGBM's .txt, TorchScript's .pt, .pt2, .keras, .h5) or a directory with one, a TensorFlow SavedModel, a "
    "directory with code/inference.py, a hook file (.py), or an importable module"
)


CODE = "code"
"""The folder of a model's script, by SageMaker's convention; ``SAGEMAKER_PROGRAM`` names another file in it."""

REQUIREMENTS = "requirements.txt"
"""What a model needs installed, in the folder of its script or in its own."""


class Artifact(msgspec.Struct, frozen=True):
    """A recognised artifact.

    ``kind`` says what was found (for messages), ``runtime`` which module of ``forecastle.runtimes`` serves it, ``path``
    where it lies: a directory, a file, or for the kind ``module`` a dotted module name. ``source`` is what the user
    typed. ``script`` is a file of hooks that lies with the model and overrides the runtime's, or empty.
    ``requirements`` is a file of what it needs installed, or empty. ``service`` is an MMS service class,
    ``FILE[:CLASS]`` or ``MODULE[:CLASS]``, for the runtime ``handler`` the handler, ``MODULE[:FUNCTION]``, or empty.
    """

    kind: str
    runtime: str
    path: str
    source: str
    script: str = ""
    requirements: str = ""
    service: str = ""


def open_artifact(source: str, *, cache: Path, progress: Progress | None = None, handler: str = "") -> Artifact:
    """Find out what ``source`` is; download and unpack it below ``cache`` where that is needed.

    With a ``handler``, ``MODULE[:FUNCTION]``, a directory with that module is a mar archive without a manifest too.

    | kind | runtime | path |
    | --- | --- | --- |
    | ``mms archive`` | ``mxnet`` | the directory with symbol, parameters and a valid signature.json |
    | ``mar archive`` | ``handler`` | the directory with ``MAR-INF/MANIFEST.json`` |
    | ``service archive`` | ``service`` | the directory with a MANIFEST.json that names a service, and no network |
    | ``onnx`` | ``onnx`` | the file, or the directory that holds exactly one (and perhaps signature.json, synset.txt) |
    | ``sklearn``, ``skops`` | ``sklearn`` | the file |
    | ``xgboost``, ``lightgbm``, ``keras`` | of the same name | the file |
    | ``torchscript``, ``torch export`` | ``torch`` | the file |
    | ``saved model`` | ``tensorflow`` | the directory with saved_model.pb |
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
        return _recognise(path, source, cache, progress or silent, handler)
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


def _recognise(path: Path, source: str, cache: Path, progress: Progress, handler: str) -> Artifact:
    if path.is_dir():
        return recognise_directory(path, source, handler)
    if not path.is_file():
        raise UnknownArtifact(f"{source} is neither a file nor a directory; {EXPECTED}")
    found = format_of(path, source)
    if found is not None:
        if found.kind == "onnx":
            _check_signature(path.with_name(mms.SIGNATURE), source)
        return Artifact(found.kind, found.runtime, str(path), source)
    with path.open("rb") as file:
        head = file.read(HEAD)
    if archive_format(head):
        return recognise_directory(unpack(path, cache, origin=source, progress=progress), source, handler)
    if path.suffix == ".py":
        return Artifact("hook file", "script", str(path), source)
    if mms.is_mms([path.name]):
        raise UnknownArtifact(
            f"{source} is one part of an MMS archive; give the archive, or the directory of its parts"
        )
    raise UnknownArtifact(f"{source} is {described(head)}; {EXPECTED}")


def recognise_directory(directory: Path, source: str, handler: str = "") -> Artifact:
    """Recognise the model in a directory, and the script with its hooks, in SageMaker's place for it.

    Raises as ``open_artifact`` does, and ``OSError`` where something cannot be read.
    """
    directory = descend(directory)
    hooks = manifest.hook_file(directory, source)
    if hooks is not None:
        needs_of_file = hooks.with_name(REQUIREMENTS)
        needed = str(needs_of_file) if needs_of_file.is_file() else ""
        return Artifact("hook file", "script", str(hooks), source, requirements=needed)
    if mar.is_mar(directory):
        return _mar(directory, source, mar.read_mar(directory, source))
    if mar.has_handler(directory, handler):
        return _mar(directory, source, mar.Mar("", "", handler, "", {}))
    program = directory / CODE / os.environ.get("SAGEMAKER_PROGRAM", "inference.py")
    script = str(program) if program.is_file() else ""
    found = _model_in(directory, source, script=bool(script))
    needs = [path for path in (directory / CODE / REQUIREMENTS, directory / REQUIREMENTS) if path.is_file()]
    return msgspec.structs.replace(found, script=script, requirements=str(needs[0]) if needs else "")


def _mar(directory: Path, source: str, found: mar.Mar) -> Artifact:
    named = [directory / name for name in (found.requirements, REQUIREMENTS) if name]
    needs = [path for path in named if path.is_file()]
    requirements = str(needs[0]) if needs else ""
    return Artifact(mar.KIND, mar.RUNTIME, str(directory), source, requirements=requirements, service=found.handler)


def _model_in(directory: Path, source: str, *, script: bool) -> Artifact:
    entries = _entries(directory)
    names = [entry.name for entry in entries if entry.is_file()]
    models = [name for name in names if name.endswith(".onnx")]
    if mms.is_mms(names) or (mms.SIGNATURE in names and not models):
        if models:
            raise BadArtifact(f"{source} holds both MXNet and ONNX files ({mms.listing(names)}); expected one model")
        service = packed_service(directory, source)
        if service and not any(name.endswith(("-symbol.json", ".params")) for name in names):
            _check_signature(directory / mms.SIGNATURE, source)
            return Artifact("service archive", "service", str(directory), source, service=service)
        files = mms.find_files(directory, source)
        _check_signature(files.signature, source)
        return Artifact("mms archive", "mxnet", str(directory), source, service=service)
    if SAVED_MODEL in names:
        return Artifact("saved model", "tensorflow", str(directory), source)
    formats = _formats(directory, names, source, lenient=script)
    if len(formats) == 1:
        ((name, found),) = formats.items()
        if found.kind != "onnx":
            return Artifact(found.kind, found.runtime, str(directory / name), source)
        _check_signature(directory / mms.SIGNATURE, source)
        return Artifact("onnx", "onnx", str(directory), source)
    if script:
        return Artifact("script directory", "script", str(directory), source)
    if formats:
        raise BadArtifact(f"{source} holds {len(formats)} model files ({mms.listing(formats)}); expected exactly one")
    listed = mms.listing(entry.name + "/" * entry.is_dir() for entry in entries)
    raise UnknownArtifact(f"{source} holds {listed}; {EXPECTED}")


def _formats(directory: Path, names: list[str], source: str, *, lenient: bool) -> dict[str, Format]:
    """Return the model files of a directory; beside a script, what can be served only by the script is no fault."""
    found: dict[str, Format] = {}
    for name in names:
        try:
            format_ = format_of(directory / name, f"{source}: {name}")
        except BadArtifact:
            if not lenient:
                raise
            continue
        if format_ is not None:
            found[name] = format_
    return found


def descend(directory: Path) -> Path:
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
