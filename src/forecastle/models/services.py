"""Service classes, MMS's way to change what happens around a model: how one is named, and which an archive packs.

A service is named ``FILE[:CLASS]`` or ``MODULE[:CLASS]``; without a class, the module's only one is meant.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import msgspec

from forecastle.errors import BadArtifact, UsageError
from forecastle.models.fetch import local_path
from forecastle.models.mms import MANIFEST, listing
from forecastle.models.module import is_module

CLASSES = "forecastle.runtimes.service.classes"
"""The module with the services that come with us."""

BUNDLED = {
    "mxnet_vision_service": "MXNetVisionService",
    "mxnet_model_service": "MXNetBaseService",
    "gluon_vision_service": "GluonVisionService",
}
"""MMS's modules of services, as they are typed, and the class that each stands for."""

_BASES = {
    *("ModelService", "SingleNodeService", "MXNetBaseService", "MXNetVisionService"),
    *("GluonImperativeBaseService", "GluonVisionService"),
}
_OWN = "mxnet_model_service.py"
"""MMS's own default service, which its export packs beside models that take JSON. It does what the runtime does."""


def split_service(service: str) -> tuple[str, str]:
    """Split ``WHERE[:CLASS]``; the class is empty where none is named."""
    where, colon, name = service.rpartition(":")
    return (where, name) if colon and name.isidentifier() else (service, "")


def parse_service(text: str) -> str:
    """Return the service that a user named, so that it is found from any folder.

    MMS's own names (``mxnet_vision_service``) mean the services that come with us. A file's path becomes absolute; a
    module is found in the working folder or among the installed ones, and is not imported.

    Raises:
        UsageError: there is no such file and no such module.
        BadArtifact: a package above the module cannot be imported.
    """
    where, name = split_service(text)
    suffix = f":{name}" if name else ""
    known = where.removeprefix("mms.").removeprefix("model_service.")
    if known in BUNDLED:
        return f"{CLASSES}:{name or BUNDLED[known]}"
    if where.endswith(".py") or "/" in where:
        path = local_path(where)
        if not path.is_file():
            raise UsageError(f"the service {text}: there is no file at {path}")
        return f"{path}{suffix}"
    beside = Path.cwd() / f"{where}.py"
    if beside.is_file():
        return f"{beside}{suffix}"
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)  # where replicas look, too
    if not is_module(where):
        raise UsageError(
            f"the service {text}: there is no file {where}.py here and no importable module {where!r}; expected "
            f"FILE[:CLASS], MODULE[:CLASS] or one of {', '.join(BUNDLED)}"
        )
    return text


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return what ``MANIFEST.json`` says; nothing where there is none, or one that is no JSON object."""
    try:
        document = msgspec.json.decode((directory / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def packed_service(directory: Path, origin: str) -> str:
    """Return the service of an unpacked archive, empty if it has none.

    It is the file that ``MANIFEST.json`` names. An archive without a manifest has one where exactly one of its Python
    files defines a class over MMS's.

    Raises:
        BadArtifact: the manifest names a file that is not there, a file is not Python, or several define a service.
    """
    files = sorted(path for path in directory.iterdir() if path.is_file())
    model = read_manifest(directory).get("Model")
    named = model.get("Service") if isinstance(model, dict) else None
    if isinstance(named, str) and named:
        found = [path for path in files if path.name == Path(named).name]
        if not found:
            raise BadArtifact(
                f"{origin}: {MANIFEST} names the service file {named}, which is not in the archive; it holds "
                f"{listing(path.name for path in files)}"
            )
    else:
        found = [path for path in files if path.suffix == ".py" and defines_service(path, origin)]
    if len(found) > 1:
        raise BadArtifact(
            f"{origin} holds {len(found)} files with service classes ({listing(path.name for path in found)}); name "
            f"the one to use as Model.Service in {MANIFEST}, or with --process"
        )
    return str(found[0]) if found and found[0].name != _OWN else ""


def defines_service(path: Path, origin: str) -> bool:
    """Say whether a Python file has a class over MMS's services; it is not run.

    Raises:
        BadArtifact: it is not Python.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise BadArtifact(f"{origin}: {path.name} is not a Python 3 file: {error}") from None
    bases = [base for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases]
    names = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in bases}
    return bool(names & _BASES)
