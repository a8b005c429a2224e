"""What the server was asked to be: the options of a run and one specification per model.

Both are plain values, made by the command line and read by everything below it. Durations are seconds, sizes are bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import msgspec

from forecastle.errors import UsageError
from forecastle.models.formats import ENDINGS

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_NAME_RULE = "letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 128 characters"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+]*://")
_FILE_SUFFIXES = (".py", ".zip", ".model", ".mar", ".tar", ".gz", ".tgz", *ENDINGS)


class ModelSpec(msgspec.Struct, frozen=True):
    """One model to serve: ``source`` is what the user typed, or None for the installed hook plugins.

    ``batch_size`` is the most requests predicted together, -1 for as many as pay and are in time; ``batch_delay`` is
    how long a free replica waits for more of them (0: not at all). ``timeout`` bounds one request from accept to
    answer, ``start_timeout`` the loading of one replica. ``queue_size`` is the most requests that wait. A server is
    ready when every ``required`` model is. ``requirements`` are lines as in a requirements.txt (``-r FILE`` among
    them) for an environment of the model's own, besides those of its artifact; ``python`` is the interpreter of its
    replicas, empty for the server's. ``service`` is the MMS service class that it is served with; empty for that of
    its archive, if it has one. ``input_type`` is what applications send it, empty for any; ``labels`` are the user's
    own.
    """

    name: str
    source: str | None
    version: str = "1"
    replicas: int = 1
    batch_size: int = -1
    batch_delay: float = 0.0
    timeout: float = 60.0
    queue_size: int = 1000
    start_timeout: float = 120.0
    required: bool = True
    requirements: tuple[str, ...] = ()
    python: str = ""
    engine: str = "auto"
    service: str = ""
    input_type: str = ""
    labels: tuple[str, ...] = ()


def default_cache_dir() -> Path:
    """``$XDG_CACHE_HOME/forecastle``, else ``~/.cache/forecastle``.

    Raises:
        UsageError: the account has no home folder, and none was named.
    """
    return _home("XDG_CACHE_HOME", ".cache", "keep downloads in; name a folder with --cache-dir")


def cluster_store(name: str) -> Path:
    """The file in which a cluster keeps what is registered, below ``$XDG_STATE_HOME`` or ``~/.local/state``.

    Raises:
        UsageError: the name is none, or the account has no home folder.
    """
    base = _home("XDG_STATE_HOME", ".local/state", "keep what is registered in; name a file with --store, or 'memory'")
    return base / "clusters" / valid_name(name) / "state.db"


def _home(variable: str, folder: str, purpose: str) -> Path:
    base = os.environ.get(variable, "")
    if base:
        return Path(base) / "forecastle"
    try:
        return Path.home() / folder / "forecastle"
    except RuntimeError:
        raise UsageError(f"there is no home folder to {purpose}") from None


class ServerOptions(msgspec.Struct, frozen=True):
    """The options of one run, as flags, environment and file gave them.

    ``replicas`` holds a count by model name, ``requirements`` a file; ``"*"`` is that of those not named. ``max_body``
    is the largest request body. ``drain_timeout`` is how long requests in flight may take to end once the server is
    told to stop. What is registered while the server runs is kept in the ``store``, by default a file of the
    ``cluster``. With ``multi_model``, models below ``model_root`` are loaded and unloaded over HTTP. A ``port`` of 0
    lets the system choose a free one.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    management_host: str = "127.0.0.1"
    management_port: int = 8081
    replicas: dict[str, int] = {}
    requirements: dict[str, str] = {}
    engine: str = "auto"
    batch_size: int = -1
    batch_delay: float = 0.0
    timeout: float = 60.0
    max_body: int = 25_000_000
    log_level: str = "info"
    log_file: Path | None = None
    log_rotation_time: str = "midnight"
    log_format: str = "text"
    log_batches: bool = False
    metrics_write_to: str | None = None
    drain_timeout: float = 25.0
    start_timeout: float = 120.0
    queue_size: int = 1000
    api_title: str = "Model Serving Apis"
    api_version: str = "1.0.0"
    multi_model: bool = False
    model_root: Path = Path("/opt/ml/models")
    cluster: str = ""
    store: str = ""
    cache_dir: Path = msgspec.field(default_factory=default_cache_dir)

    def spec(self, name: str, source: str | None) -> ModelSpec:
        """The specification of a model that says nothing for itself."""
        needs = self.requirements.get(name, self.requirements.get("*"))
        return ModelSpec(
            name=name,
            source=source,
            replicas=self.replicas.get(name, self.replicas.get("*", 1)),
            batch_size=self.batch_size,
            batch_delay=self.batch_delay,
            timeout=self.timeout,
            queue_size=self.queue_size,
            start_timeout=self.start_timeout,
            engine=self.engine,
            requirements=() if needs is None else (f"-r {needs}",),
        )


def valid_name(name: str) -> str:
    """Return ``name`` if a model may be called that.

    No name is reserved: a model's routes have two segments (``/{name}/predict``), every fixed route of the inference
    port has one, so ``ping`` and ``invocations`` are names like any other.

    Raises:
        UsageError: it holds what a URL segment, a metric label or a file name should not.
    """
    if _NAME.fullmatch(name):
        return name
    raise UsageError(f"{name!r} cannot be a model's name: a name is {_NAME_RULE}")


def parse_model(text: str) -> tuple[str, str]:
    """Split ``NAME=SOURCE`` at its first ``=``; a bare source is named after its file or module.

    Raises:
        UsageError: a part is empty, the name is not a valid one, or none can be made from the source.
    """
    name, equals, source = text.partition("=")
    if not equals or _URL.match(name):  # a URL with a query: its "=" separates no name
        return _name_from(text), text
    if not source:
        raise UsageError(f"{text!r} names no source: write NAME=SOURCE, for instance {name or 'model'}=model.onnx")
    if not name:
        raise UsageError(f"{text!r} gives the model no name: write NAME=SOURCE, for instance model{text}")
    return valid_name(name), source


def _name_from(source: str) -> str:
    if not source.strip():
        raise UsageError("a model was given as empty text: write NAME=SOURCE, for instance model=model.onnx")
    path = unquote(urlsplit(source).path) if _URL.match(source) else source.replace(os.sep, "/")
    last = PurePosixPath(path).name
    module = last == source and not last.endswith(_FILE_SUFFIXES) and all(map(str.isidentifier, last.split(".")))
    name = last.rpartition(".")[2] if module else PurePosixPath(last).stem.removesuffix(".tar")
    if _NAME.fullmatch(name):
        return name
    raise UsageError(f"no model name can be made from {source!r}: write NAME=SOURCE, for instance model={source}")


def distinct(specs: Iterable[ModelSpec]) -> list[ModelSpec]:
    """The specifications in their order.

    Raises:
        UsageError: two have the same name.
    """
    seen: dict[str, ModelSpec] = {}
    for spec in specs:
        other = seen.setdefault(spec.name, spec)
        if other is not spec:
            raise UsageError(
                f"two models are called {spec.name!r} ({other.source} and {spec.source}): give each its own NAME=SOURCE"
            )
    return list(seen.values())
