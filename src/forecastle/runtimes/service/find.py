"""From a service's name to its class, and to the service that serves an artifact."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from forecastle.errors import LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.models.services import read_manifest, split_service
from forecastle.runtimes.service.base import ModelService
from forecastle.runtimes.service.engine import folder

_BRINGS = {
    "mxnet": "which is not installed and which nothing here needs: use numpy, and the image, nlp and ndarray functions "
    "of mms.utils.mxnet, whose arrays are numpy's",
    "mms": "which is not installed: it is forecastle-dropin (pip install ./dropin)",
}


def find_class(service: str) -> type[ModelService]:
    """Import a service's module or file and return its class.

    Without a class in the name, the module must define exactly one service that none of its others builds on; a module
    that defines none may import one that is not ours.

    Raises:
        LoadFailed: there is no such class, or several; or the module needs a package that is not there.
    """
    where, name = split_service(service)
    module = _imported(where)
    shown = Path(where).name if where.endswith(".py") else where
    if name:
        found = getattr(module, name, None)
        if not (inspect.isclass(found) and issubclass(found, ModelService)):
            raise LoadFailed(
                f"{shown} has no service class {name!r}; it has {_listed(_services(module)) or 'no service class'}"
            )
        return found
    services = _services(module)
    theirs = [service for service in services if not service.__module__.startswith("forecastle.")]
    own = [service for service in theirs if service.__module__ == module.__name__]
    candidates = _leaves(own or theirs)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise LoadFailed(
            f"{shown} has {len(candidates)} service classes ({_listed(candidates)}); say which: {shown}:"
            f"{candidates[0].__name__}"
        )
    raise LoadFailed(f"{shown} has no service class; expected one derived from MXNetBaseService or SingleNodeService")


def make(service_class: type[ModelService], artifact: Artifact) -> ModelService:
    """Make the service of an artifact, with the arguments that its class takes.

    A constructor that takes a name, a directory and a manifest is given these and ``None`` for the device; one that
    takes less, as MMS's first ones did, is given the directory alone.
    """
    service_class.artifact = artifact
    constructor: Callable[..., ModelService] = service_class
    directory = folder(artifact)
    later = (Path(artifact.source).stem, directory, _manifest(artifact), None)
    taken = _positional(service_class)
    if taken is None:
        return constructor(*later)
    return constructor(*later[: len(taken)]) if len(taken) > 2 and taken[0] != "path" else constructor(directory)


def _positional(service_class: type[ModelService]) -> list[str] | None:
    """Return the names of the arguments that the constructor takes by position, ``None`` for any number of them."""
    parameters = list(inspect.signature(service_class).parameters.values())
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _manifest(artifact: Artifact) -> dict[str, Any]:
    """Return the archive's manifest; where it has none, what is known of one."""
    name = Path(artifact.source).stem
    return read_manifest(Path(folder(artifact))) or {"Model": {"Model-Name": name, "Signature": "signature.json"}}


def _imported(where: str) -> ModuleType:
    try:
        if where.endswith(".py"):
            return _from_file(Path(where))
        if (working := str(Path.cwd())) not in sys.path:
            sys.path.append(working)
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _BRINGS or importlib.util.find_spec(missing) is not None:
            raise
        shown = Path(where).name if where.endswith(".py") else where
        raise LoadFailed(f"the service {shown} imports {missing}, {_BRINGS[missing]}") from error


def _from_file(path: Path) -> ModuleType:
    """Import a file under its own name, or under one beside it where a module of that name is there already."""
    name = path.stem if path.stem not in sys.modules else f"service_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LoadFailed(f"the service file {path.name} is not there any more")
    if (beside := str(path.parent)) not in sys.path:
        sys.path.insert(0, beside)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _services(module: ModuleType) -> list[type[ModelService]]:
    found = {
        value: None for value in vars(module).values() if inspect.isclass(value) and issubclass(value, ModelService)
    }
    return list(found)


def _leaves(services: list[type[ModelService]]) -> list[type[ModelService]]:
    return [
        service
        for service in services
        if not inspect.isabstract(service) and not any(service in other.__mro__[1:] for other in services)
    ]


def _listed(services: list[type[ModelService]]) -> str:
    return ", ".join(service.__name__ for service in services)
