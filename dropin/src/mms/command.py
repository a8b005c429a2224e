"""The command ``mms``: MMS 0.x's syntax for starting a server.

Contract: ``mms --models NAME=PATH [NAME=PATH ...] [--process SERVICE] [--gen-api LANGUAGE] [--port PORT]``, where
argparse's prefix matching made ``--model`` work too. The flags that later versions of MMS added are accepted.

A service is for all models unless it is given as ``NAME=SERVICE``, and goes before the one that an archive packs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, get_args

import msgspec

from forecastle.cli import report, run, values
from forecastle.client.generate import checked
from forecastle.cluster.specs import ModelSpec, ServerOptions, distinct, parse_model
from forecastle.errors import StartError, UsageError
from forecastle.models.engines import Engine
from forecastle.models.services import parse_service

_PROCESS = "service class as MODULE or FILE, perhaps with :CLASS (default: the archive's, or mxnet_vision_service)"
PROGRAMS = ("mms", "mxnet-model-server", "deep-model-server", "multi-model-server")
_LOG_LEVELS = {"notset": "debug"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; try `{self.prog} --help`")


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the models that the arguments name (those of the process by default), and exit."""
    try:
        options, specs, language = read(sys.argv[1:] if arguments is None else arguments)
        code = run.serve(options, specs, language)
    except StartError as error:
        code = report(error, _program())
    sys.exit(code)


def read(arguments: Sequence[str]) -> tuple[ServerOptions, list[ModelSpec], str]:
    """The options and models that MMS's arguments ask for, and the language of the client to generate, or nothing.

    MMS has one port; the management port is therefore any free one unless ``--management-port`` says which, so that
    several servers can run beside each other as before.

    Raises:
        UsageError: an argument is wrong.
        BadArtifact: a package above a service's module cannot be imported.
    """
    given = _parser().parse_args(arguments)
    language = checked(given.gen_api) if given.gen_api else ""
    services = _services(given.process)
    if given.gpu is not None:
        sys.stderr.write(f"{_program()}: --gpu has no effect here: models run on the CPU\n")
    options = ServerOptions(
        host=given.host,
        port=given.port,
        management_port=given.management_port,
        engine=given.engine,
        log_level=given.log_level,
        log_file=given.log_file,
        log_rotation_time=_rotation(given.log_rotation_time),
        log_format=given.log_format,
        metrics_write_to=given.metrics_write_to,
        model_root=given.model_store or ServerOptions(cache_dir=Path()).model_root,
    )
    specs = distinct(options.spec(name, _stored(path, given.model_store)) for name, path in given.models)
    unknown = [name for name in services if name and name not in {spec.name for spec in specs}]
    if unknown:
        raise UsageError(f"--process {unknown[0]}={services[unknown[0]]}: there is no model {unknown[0]!r} in --models")
    everyone = services.get("", "")
    return (
        options,
        [msgspec.structs.replace(spec, service=services.get(spec.name, everyone)) for spec in specs],
        language,
    )


def _stored(path: str, store: Path | None) -> str:
    """Return where a model lies: below the store if there is one and the model is there, else where its path says."""
    below = None if store is None or "://" in path else store / path
    return str(below) if below is not None and below.exists() else path


def _services(given: Sequence[str]) -> dict[str, str]:
    """Return the service of each model by its name; that of all others has no name."""
    services: dict[str, str] = {}
    for text in given:
        name, _, service = text.rpartition("=")
        if name in services:
            whose = f"for the model {name!r}" if name else "for all models"
            raise UsageError(f"--process {text}: a service {whose} was given before")
        services[name] = parse_service(service)
    return services


def _program() -> str:
    """The name that the command was called by: MMS has had four."""
    name = Path(sys.argv[0]).name
    return name if name in PROGRAMS else "mms"


def _pair(text: str) -> tuple[str, str]:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH")
    try:
        return parse_model(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(error.message) from None


def _port(text: str) -> int:
    try:
        return values.port(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _log_level(text: str) -> str:
    try:
        return values.log_level(_LOG_LEVELS.get(text.lower(), text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_program(), description="Serve MMS archives over HTTP.")
    add = parser.add_argument
    names, text = ("--models", "--model"), "models to serve"
    add(*names, nargs="+", required=True, action="extend", type=_pair, metavar="NAME=PATH", help=text)
    add("--process", "--service", action="append", default=[], metavar="[NAME=]SERVICE", help=_PROCESS)
    add("--gen-api", metavar="LANGUAGE", help="generate a client's package in ./build first")
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", default=8080, type=_port, help="port for predictions (default: %(default)s)")
    add("--management-port", default=0, type=_port, help="port for metrics and management (default: any free one)")
    add("--log-level", default="info", type=_log_level, metavar="LEVEL", help="how much to log (default: %(default)s)")
    add("--log-file", type=Path, metavar="FILE", help="file that the log goes to besides stderr")
    add("--log-rotation-time", nargs="+", default=["1 H"], metavar="TIME", help="when to begin another (default: 1 H)")
    add("--log-format", choices=get_args(values.LogFormat), default="text", help="how to log (default: %(default)s)")
    add("--metrics-write-to", choices=get_args(values.MetricsTarget), help="write metrics every minute")
    add("--engine", choices=get_args(Engine), default="auto", help="what runs the archives (default: %(default)s)")
    add("--model-store", type=Path, metavar="DIR", help="folder of the models that are named without one")
    for ignored in ("--start", "--foreground"):
        add(ignored, action="store_true", help=argparse.SUPPRESS)
    add("--gpu", help=argparse.SUPPRESS)
    return parser


def _rotation(words: Sequence[str]) -> str:
    try:
        return values.rotation_text(" ".join(words))
    except ValueError as error:
        raise UsageError(f"--log-rotation-time: {error}") from None
