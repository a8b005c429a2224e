"""The desired state: applications, models and which version of each is current, and how it may change.

It is one plain value. A change is a function from one state to the next; it holds the rules, and raises where one of
them would be broken. The store makes changes atomic, the controller makes what runs equal to them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import msgspec

from forecastle.cluster.specs import ModelSpec
from forecastle.errors import ApplicationNotFound, BadInput, Conflict, ModelNotFound

INPUT_TYPES = {
    "integers": ("integer", "ints", "int", "i"),
    "floats": ("float", "f"),
    "doubles": ("double", "d"),
    "bytes": ("byte", "b"),
    "strings": ("string", "strs", "str", "s"),
    "json": (),
}
"""The types of an application's input, and by what other names Clipper knows them."""

MAX_SLO_MICROS = 3_600_000_000
"""An hour, the longest latency objective."""

CACHE_BYTES = 32 << 20
"""What an application's cache holds at the most, unless it says otherwise."""

_BY_ALIAS = {alias: name for name, aliases in INPUT_TYPES.items() for alias in (name, *aliases)}
_APPLICATION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}", re.ASCII)
_LABEL = re.compile(r"[^\x00-\x1f\x7f,:]{1,128}")
_NAMES = "letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 128 characters"


class Application(msgspec.Struct, frozen=True):
    """A named endpoint: what it takes, how long it may take, and what it answers when no model does.

    ``slo_micros`` is the latency objective in microseconds. ``models`` are the names it is linked to, ``policy``
    chooses among them with ``policy_options``. ``cache_bytes`` bounds its cache, 0 for none; an answer is kept for
    ``cache_seconds``, 0 for as long as there is room.
    """

    name: str
    input_type: str
    default_output: str
    slo_micros: int
    models: tuple[str, ...] = ()
    policy: str = "current"
    policy_options: dict[str, float | str | dict[str, float]] = {}
    cache_bytes: int = CACHE_BYTES
    cache_seconds: float = 0.0


class Desired(msgspec.Struct, frozen=True):
    """What is asked for: applications by name, models by name and version, the current version by model.

    A model with a version has a current one. A model with an empty source is containerless: it is registered, and
    nothing runs for it.
    """

    applications: dict[str, Application] = {}
    models: dict[str, dict[str, ModelSpec]] = {}
    current: dict[str, str] = {}

    def application(self, name: str) -> Application:
        """Return an application.

        Raises:
            ApplicationNotFound: none has this name.
        """
        found = self.applications.get(name)
        if found is None:
            raise ApplicationNotFound(f"no application {name[:128]!r} is registered")
        return found

    def model(self, name: str, version: str | None = None) -> ModelSpec:
        """Return a model's version, by default the current one.

        Raises:
            ModelNotFound: no model has this name, or it has no such version.
        """
        versions = self.models.get(name)
        if not versions:
            raise ModelNotFound(f"no model {name[:128]!r} is registered")
        found = versions.get(self.current[name] if version is None else version)
        if found is None:
            there = ", ".join(sorted(versions)[:20])
            raise ModelNotFound(f"the model {name!r} has no version {str(version)[:128]!r}; it has {there}")
        return found


def input_type(text: str) -> str:
    """Return the type that is called so: ``ints`` is ``integers``.

    Raises:
        BadInput: no type is.
    """
    found = _BY_ALIAS.get(text)
    if found is None:
        raise BadInput(f"there is no input type {text[:40]!r}; there are {', '.join(INPUT_TYPES)}")
    return found


def settled(spec: ModelSpec) -> ModelSpec:
    """Return a model as it is registered: a path is found from any folder, and no server waits for it to be ready."""
    source = spec.source or ""
    if source and "://" not in source and (path := Path(source)).exists():
        source = str(path.absolute())
    return msgspec.structs.replace(spec, source=source, required=False)


def register(state: Desired, application: Application) -> Desired:
    """Add an application.

    Raises:
        BadInput: its name, type, objective or cache is none.
        Conflict: there is one of this name.
    """
    name, slo = application.name, application.slo_micros
    if not _APPLICATION_NAME.fullmatch(name):
        raise BadInput(f"{name[:140]!r} cannot be an application's name: a name is {_NAMES}")
    if name in state.applications:
        raise Conflict(f"an application {name!r} is registered already; delete it first, or choose another name")
    if not 0 < slo <= MAX_SLO_MICROS:
        raise BadInput(f"a latency objective of {slo} microseconds is none: it is 1 to {MAX_SLO_MICROS} (an hour)")
    if application.cache_bytes < 0 or application.cache_seconds < 0:
        raise BadInput("cache_bytes and cache_seconds of an application are 0 or more")
    application = msgspec.structs.replace(application, input_type=input_type(application.input_type), models=())
    return _with_application(state, application)


def unregister(state: Desired, name: str) -> Desired:
    """Take an application away, with its links.

    Raises:
        ApplicationNotFound: none has this name.
    """
    state.application(name)
    return msgspec.structs.replace(state, applications={k: v for k, v in state.applications.items() if k != name})


def link(state: Desired, name: str, models: tuple[str, ...], served: Collection[str] = ()) -> Desired:
    """Link an application to models, besides those that it is linked to.

    ``served`` are names of models that are not registered, and may be linked all the same: they take any type.

    Raises:
        ApplicationNotFound, ModelNotFound: one of them is not there.
        Conflict: it is linked already, or a model takes another type.
    """
    application = state.application(name)
    for model in models:
        if model in application.models:
            raise Conflict(f"the application {name!r} is linked to the model {model!r} already")
        if model in state.models or model not in served:
            _fits(application, state.model(model))
    return _with_application(state, msgspec.structs.replace(application, models=(*application.models, *models)))


def unlink(state: Desired, name: str, models: tuple[str, ...]) -> Desired:
    """Take links away.

    Raises:
        ApplicationNotFound, ModelNotFound: there is no such application, or it has no such link.
    """
    application = state.application(name)
    for model in models:
        if model not in application.models:
            raise ModelNotFound(f"the application {name!r} is not linked to the model {model[:128]!r}")
    left = tuple(model for model in application.models if model not in models)
    return _with_application(state, msgspec.structs.replace(application, models=left))


def add_model(state: Desired, spec: ModelSpec, *, current: bool = True) -> Desired:
    """Add a version of a model, and make it the current one; the first one is so in any case.

    Raises:
        BadInput: the version, a label or the type is none.
        Conflict: there is this version, or the type contradicts an application that is linked to the name.
    """
    if not _VERSION.fullmatch(spec.version):
        rule = _NAMES.replace("'_'", "'_', '+'")
        raise BadInput(f"{spec.version[:140]!r} cannot be a version: a version is {rule}")
    for label in spec.labels:
        if not _LABEL.fullmatch(label):
            raise BadInput(f"{label[:140]!r} cannot be a label: it has 1 to 128 characters, and no ',' and no ':'")
    versions = state.models.get(spec.name, {})
    if spec.version in versions:
        raise Conflict(f"version {spec.version!r} of the model {spec.name!r} is registered already")
    if spec.input_type:
        spec = msgspec.structs.replace(spec, input_type=input_type(spec.input_type))
    becomes = current or spec.name not in state.current
    if becomes:
        _fits_links(state, spec)
    return msgspec.structs.replace(
        state,
        models={**state.models, spec.name: {**versions, spec.version: spec}},
        current={**state.current, spec.name: spec.version} if becomes else state.current,
    )


def use_version(state: Desired, name: str, version: str) -> Desired:
    """Make a version the current one.

    Raises:
        ModelNotFound: it is not there.
        Conflict: its type contradicts an application that is linked to the name.
    """
    _fits_links(state, state.model(name, version))
    return msgspec.structs.replace(state, current={**state.current, name: version})


def remove_model(state: Desired, name: str, version: str) -> Desired:
    """Take a version away. Of those that are left, the one that was added last becomes current where it was.

    Raises:
        ModelNotFound: it is not there.
    """
    state.model(name, version)
    left = {k: v for k, v in state.models[name].items() if k != version}
    models = {k: v for k, v in state.models.items() if k != name}
    current = {k: v for k, v in state.current.items() if k != name}
    if left:
        models[name] = left
        current[name] = next(reversed(left)) if state.current[name] == version else state.current[name]
    return msgspec.structs.replace(state, models=models, current=current)


def scale(state: Desired, name: str, version: str, replicas: int) -> Desired:
    """Change how many replicas a version has.

    Raises:
        ModelNotFound: it is not there.
        BadInput: the number is none, or nothing runs for this model.
    """
    spec = state.model(name, version)
    if not 0 <= replicas <= MAX_REPLICAS:
        raise BadInput(f"{replicas} is no number of replicas: it is 0 to {MAX_REPLICAS}")
    if not spec.source:
        raise BadInput(f"the model {name!r} version {version!r} is a containerless model: it has no replicas to count")
    spec = msgspec.structs.replace(spec, replicas=replicas)
    return msgspec.structs.replace(state, models={**state.models, name: {**state.models[name], version: spec}})


MAX_REPLICAS = 1000
"""The most replicas that a version may have."""


def _with_application(state: Desired, application: Application) -> Desired:
    return msgspec.structs.replace(state, applications={**state.applications, application.name: application})


def _fits_links(state: Desired, spec: ModelSpec) -> None:
    for application in state.applications.values():
        if spec.name in application.models:
            _fits(application, spec)


def _fits(application: Application, spec: ModelSpec) -> None:
    if spec.input_type and spec.input_type != application.input_type:
        raise Conflict(
            f"the model {spec.name!r} version {spec.version!r} takes {spec.input_type}, "
            f"the application {application.name!r} takes {application.input_type}"
        )
