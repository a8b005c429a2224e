"""The desired state as rows: a kind, a name and a JSON document; what stores on disk and in Redis hold alike."""

from __future__ import annotations

import msgspec

from forecastle.cluster.desired import Application, Desired
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import StoreFailed

FORMAT = 1
"""The version of this layout. A store of a later one is refused, never guessed at."""

Rows = dict[tuple[str, str], bytes]
"""Documents by kind and name. JSON ignores fields it does not know and fills those it lacks: versions may differ."""

_APPLICATION, _MODEL, _CURRENT = "application", "model", "current"

_application = msgspec.json.Decoder(Application).decode


class _Registered(msgspec.Struct):
    """A version of a model; ``order`` counts the versions of a name in the order in which they were added."""

    spec: ModelSpec
    order: int


_registered = msgspec.json.Decoder(_Registered).decode


def to_rows(state: Desired) -> Rows:
    """Return the state as rows."""
    rows: Rows = {}
    for name, application in state.applications.items():
        rows[_APPLICATION, name] = msgspec.json.encode(application)
    for name, versions in state.models.items():
        for order, (version, spec) in enumerate(versions.items()):
            rows[_MODEL, f"{name}/{version}"] = msgspec.json.encode(_Registered(spec, order))
    for name, version in state.current.items():
        rows[_CURRENT, name] = msgspec.json.encode(version)
    return rows


def from_rows(rows: Rows) -> Desired:
    """Return the state that rows hold.

    Raises:
        StoreFailed: they hold none.
    """
    applications: dict[str, Application] = {}
    models: dict[str, list[_Registered]] = {}
    current: dict[str, str] = {}
    try:
        for (kind, name), document in sorted(rows.items()):
            if kind == _APPLICATION:
                applications[name] = _application(document)
            elif kind == _MODEL:
                models.setdefault(name.partition("/")[0], []).append(_registered(document))
            elif kind == _CURRENT:
                current[name] = msgspec.json.decode(document, type=str)
    except msgspec.DecodeError as error:
        raise StoreFailed(f"the store holds what cannot be read: {error}") from None
    return Desired(
        applications,
        {name: {each.spec.version: each.spec for each in sorted(found, key=_order)} for name, found in models.items()},
        current,
    )


def _order(registered: _Registered) -> int:
    return registered.order
