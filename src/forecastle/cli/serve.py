"""``forecastle serve``: from flags, environment and file to the options and models of a run."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from forecastle.cli import run, sagemaker, sources, values
from forecastle.cluster.specs import ModelSpec, ServerOptions, default_cache_dir, distinct, parse_model, valid_name
from forecastle.errors import UsageError
from forecastle.models.engines import Engine

PLUGINS = "inference_server"
"""The entry-point group in which installed packages offer their hooks."""

_DEFAULTS = ServerOptions(cache_dir=Path())

_Port = Annotated[int, Parameter(converter=sources.reads(values.port))]
_BatchSize = Annotated[int, Parameter(converter=sources.reads(values.batch_size))]
_Count = Annotated[int, Parameter(converter=sources.reads(values.count))]
_Delay = Annotated[float, Parameter(converter=sources.reads(values.delay), show_default="{:g}s".format)]
_Duration = Annotated[float, Parameter(converter=sources.reads(values.duration), show_default="{:g}s".format)]
_Size = Annotated[int, Parameter(converter=sources.reads(values.size), show_default=lambda size: f"{size // 10**6}MB")]
_LogLevel = Annotated[values.LogLevel, Parameter(converter=sources.reads(values.log_level))]
_Rotation = Annotated[str, Parameter(converter=sources.reads(values.rotation_text))]
_Files = Annotated[list[values.NameFile], Parameter(converter=sources.reads_all(values.files), n_tokens=1)]
_Replicas = Annotated[list[values.NameCount], Parameter(converter=sources.reads_all(values.replicas), n_tokens=1)]


def serve(
    *models: str,
    config: Annotated[Path | None, Parameter(alias="-c")] = None,
    host: str = _DEFAULTS.host,
    port: _Port = _DEFAULTS.port,
    management_host: str = _DEFAULTS.management_host,
    management_port: _Port = _DEFAULTS.management_port,
    replicas: _Replicas | None = None,
    requirements: _Files | None = None,
    engine: Engine = "auto",
    batch_size: _BatchSize = _DEFAULTS.batch_size,
    batch_delay: _Delay = _DEFAULTS.batch_delay,
    timeout: _Duration = _DEFAULTS.timeout,
    max_body: _Size = _DEFAULTS.max_body,
    log_level: _LogLevel = "info",
    log_file: Path | None = None,
    log_rotation_time: _Rotation = "midnight",
    log_format: values.LogFormat = "text",
    log_batches: bool = False,
    metrics_write_to: values.MetricsTarget | None = None,
    drain_timeout: _Delay = _DEFAULTS.drain_timeout,
    start_timeout: _Duration = _DEFAULTS.start_timeout,
    queue_size: _Count = _DEFAULTS.queue_size,
    api_title: str = _DEFAULTS.api_title,
    api_version: str = _DEFAULTS.api_version,
    multi_model: bool = False,
    model_root: Path = _DEFAULTS.model_root,
    cluster: str = "",
    store: str = "",
    cache_dir: Path | None = None,
) -> int:
    """Serve models over HTTP until SIGTERM or Ctrl-C.

    Every option is also an environment variable (FORECASTLE_BATCH_SIZE) and a key of forecastle.toml (batch_size). A
    flag wins over the environment, the environment over the file.

    Args:
        models: NAME=SOURCE for each model; a SOURCE alone is named after its file or module. SOURCE is an archive of
            MMS or TorchServe or its folder, an .onnx file, a Python file or module with hooks, or a file:// or
            http(s):// URL of these. Without any model, the hook packages that are installed are served.
        config: The file to read options and models from (default: forecastle.toml in the working folder, if present).
        host: The address to listen on for predictions; 0.0.0.0 for every network of the machine, and the default of
            a container's first process.
        port: The port for predictions; 0 for any free one.
        management_host: The address to listen on for metrics and management.
        management_port: The port for metrics and management; 0 for any free one.
        replicas: Processes per model: NAME=N for one model, N for all; may be repeated.
        requirements: A requirements.txt to install for a model, in an environment of its own: NAME=FILE for one
            model, FILE for all; may be repeated.
        engine: What runs MMS archives: onnx, mxnet (installed in an environment of its own), or auto, which is onnx
            wherever that can.
        batch_size: The most requests that are predicted together; -1 for as many as pay and are in time.
        batch_delay: How long a free replica waits for a batch to fill: 2ms, 0.5s.
        timeout: The longest a request may take.
        max_body: The largest request body: 25MB, 16MiB.
        log_level: debug, info, warning, error or critical.
        log_file: A file that the log goes to besides stderr; seven older ones are kept.
        log_rotation_time: When another log file is begun: 1 H, 30 M, 7 D, midnight, W0 (Monday).
        log_format: text, or json for one object on a line.
        log_batches: Log each batch: its size and why it has it, what it was foretold to take and what it took.
        metrics_write_to: Write metrics every minute: log, or csv for files below ./metrics. /metrics has more, always.
        drain_timeout: How long requests in flight may take to end when the server stops.
        start_timeout: How long a replica may take to load its model.
        queue_size: The most requests of one model that wait; further ones are refused with 503.
        api_title: The title of the API's description, after which generated clients are named.
        api_version: The version in the API's description.
        multi_model: Load and unload models over HTTP, as SageMaker's multi-model endpoints do.
        model_root: The directory that those models lie in, and that the management port looks models up in.
        cluster: The name under which registered applications and models are kept, and found again by the next server
            (default: default). A server of a named cluster needs no model to start with.
        store: Where they are kept instead: a file for SQLite, redis://HOST:PORT/DB for servers that share them, or
            memory.
        cache_dir: Where downloads and unpacked archives are kept (default: ~/.cache/forecastle).
    """
    options = ServerOptions(
        host=host,
        port=port,
        management_host=management_host,
        management_port=management_port,
        replicas=dict(replicas or ()),
        requirements=dict(requirements or ()),
        engine=engine,
        batch_size=batch_size,
        batch_delay=batch_delay,
        timeout=timeout,
        max_body=max_body,
        log_level=log_level,
        log_file=log_file,
        log_rotation_time=log_rotation_time,
        log_format=log_format,
        log_batches=log_batches,
        metrics_write_to=metrics_write_to,
        drain_timeout=drain_timeout,
        start_timeout=start_timeout,
        queue_size=queue_size,
        api_title=api_title,
        api_version=api_version,
        multi_model=multi_model,
        model_root=model_root,
        cluster=cluster,
        store=store,
        cache_dir=default_cache_dir() if cache_dir is None else cache_dir.expanduser(),
    )
    return run.serve(checked(options), specs(models, options, sources.locate(config)))


def specs(models: tuple[str, ...], options: ServerOptions, file: Path | None) -> list[ModelSpec]:
    """The models to serve: those named, else those of the file, else the installed hooks, else SageMaker's.

    Raises:
        UsageError: there is none, two have one name, or replicas are counted for a model that is not there.
    """
    if models:
        found = [options.spec(*parse_model(text)) for text in models]
    else:
        found = sources.models(file, options) if file else []
    empty = options.multi_model or options.cluster or options.store
    found = distinct(found) or ([] if empty else [_unnamed(options)])
    names = [spec.name for spec in found]
    for option in ("replicas", "requirements"):
        for name in getattr(options, option):
            if name != "*" and name not in names:
                there = ", ".join(names)
                raise UsageError(f"{option} are set for {name!r}, but no such model is served; there is {there}")
    return found


def checked(options: ServerOptions) -> ServerOptions:
    """The options, whose ports differ.

    Raises:
        UsageError: predictions and management are to share one port.
    """
    if options.port and options.port == options.management_port:
        raise UsageError(
            f"port and management_port are both {options.port}; give one of them another number, for instance "
            f"--management-port {options.port + 1 if options.port < 65535 else 8081}"
        )
    return options


def _unnamed(options: ServerOptions) -> ModelSpec:
    """The model of a run that names none: the installed hooks, else what lies where SageMaker puts a model.

    The installed hooks make one model: called as the entry point if there is just one, else ``model``.
    """
    names = {entry.name for entry in importlib.metadata.entry_points(group=PLUGINS)}
    if not names:
        directory = sagemaker.model()
        if directory is not None:
            return options.spec("model", directory)
        raise UsageError(
            "there is no model to serve: name one, for instance `forecastle serve shipping=shipping.py`, or install a "
            f"package that offers hooks in the entry-point group {PLUGINS!r}"
        )
    try:
        name = valid_name(names.pop()) if len(names) == 1 else "model"
    except UsageError:
        name = "model"
    return options.spec(name, None)
