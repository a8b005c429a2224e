"""From a handler's name to what is called: a function of a module, or the method of its only class."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from forecastle.errors import LoadFailed
from forecastle.models.mar import BUNDLED, MANIFEST
from forecastle.runtimes.handler.context import Context

Handle = Callable[[Any, Context], Any]
DEFAULT = "handle"
_CLASSES = {
    "base_handler": ("forecastle.runtimes.handler.torch", "BaseHandler"),
    "image_classifier": ("forecastle.runtimes.handler.vision", "ImageClassifier"),
}
_NOT_HERE = {"image_segmenter", "object_detector", "text_classifier", "text_handler"}
_THEIRS = {"mms": "forecastle-dropin", "ts": "forecastle-dropin"}


def find_handler(name: str, model_dir: Path, context: Context) -> Handle:
    """Import a handler, initialize it, and return what is called for each batch.

    ``name`` is ``MODULE[:FUNCTION]``, where the module is one of the archive's, with or without ``.py``, or any other.
    A function (``handle`` unless another is named) is called once with ``None`` for data, so that it may load its
    model; where there is none, the module's only class is made, and its ``initialize`` called.

    Raises:
        LoadFailed: no handler is named, the module is not there, or it has neither such a function nor one class.
    """
    if not name:
        raise LoadFailed(f"the archive's {MANIFEST} names no handler; expected model.handler to be MODULE:FUNCTION")
    where, _, wanted = name.partition(":")
    if where in BUNDLED and not (model_dir / f"{where}.py").is_file():
        return _of_class(_bundled(where, name), DEFAULT, name, context)
    module = _imported(where, name, model_dir)
    function = getattr(module, wanted or DEFAULT, None)
    if inspect.isroutine(function):
        function(None, context)
        return function
    classes = _classes(module)
    if len(classes) == 1:
        return _of_class(classes[0], wanted or DEFAULT, name, context)
    found = f"{len(classes)} classes ({', '.join(one.__name__ for one in classes)})" if classes else "no class"
    raise LoadFailed(
        f"the handler {name}: {where} has no function {wanted or DEFAULT!r}, and {found}. "
        "Expected only one class with initialize(context) and handle(data, context), or a function (data, context)"
    )


def _bundled(where: str, name: str) -> type:
    module, class_name = _CLASSES[where]
    try:
        found: type = getattr(importlib.import_module(module), class_name)
    except ModuleNotFoundError as error:
        raise LoadFailed(
            f"the handler {name} needs the package {error.name!r}: pip install 'forecastle[torch]'"
        ) from error
    return found


def _of_class(found: type, method: str, name: str, context: Context) -> Handle:
    handler = found()
    handle = getattr(handler, method, None) or getattr(handler, DEFAULT, None)
    if not callable(handle):
        raise LoadFailed(f"the handler {name}: the class {found.__name__} has no method handle(data, context)")
    initialize = getattr(handler, "initialize", None)
    if callable(initialize):
        initialize(context)
    bound: Handle = handle
    return bound


def _imported(where: str, name: str, model_dir: Path) -> ModuleType:
    path = Path(where)
    folder, stem = model_dir / PurePosixPath(where).parent, PurePosixPath(where).name.removesuffix(".py")
    if path.is_absolute():
        folder = path.parent
    for place in dict.fromkeys((str(model_dir), str(folder))):
        if place not in sys.path:
            sys.path.insert(0, place)
    file = folder / f"{stem}.py"
    try:
        return _from_file(file, stem) if file.is_file() else importlib.import_module(stem)
    except ModuleNotFoundError as error:
        raise _missing(error, stem, name, model_dir) from error


def _from_file(path: Path, stem: str) -> ModuleType:
    """Import a file under its own name, also where a module of that name is there already: ``service.py`` is common.

    One that is called like a module of Python's own does not take its place.
    """
    stem = f"handler_{stem}" if stem in sys.stdlib_module_names else stem
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None, "a .py file has a loader"
    assert spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def _missing(error: ModuleNotFoundError, stem: str, name: str, model_dir: Path) -> LoadFailed:
    missing = error.name or ""
    if missing == stem and stem in _NOT_HERE:
        return LoadFailed(
            f"the handler {name} is one of TorchServe's that is not here ({', '.join(sorted(BUNDLED))} are): pack a "
            "file with a class over ts.torch_handler.base_handler.BaseHandler"
        )
    if missing == stem:
        there = ", ".join(sorted(path.name for path in model_dir.glob("*.py"))) or "no Python file"
        return LoadFailed(f"the handler {name}: there is no {stem}.py in the archive; it holds {there}")
    package = _THEIRS.get(missing.partition(".")[0])
    bring = (
        f"it is {package}'s (pip install {package})"
        if package and importlib.util.find_spec(missing.partition(".")[0]) is None
        else "name its package in a requirements.txt in the archive, or with --requirements"
    )
    return LoadFailed(f"the handler {name} imports {missing!r}, which is not installed: {bring}")


def _classes(module: ModuleType) -> list[type]:
    """Return the classes that a module defines itself; those over which others of them are built are no handlers."""
    own = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    return [one for one in dict.fromkeys(own) if not any(one in other.__mro__[1:] for other in own)]
