"""Where an option comes from: a flag, a variable, ``forecastle.toml``, the platform, its default: the first that is."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec.structs
import msgspec.toml
from cyclopts import App, ArgumentCollection, Token
from cyclopts.config import Dict, Env

from forecastle.cli import sagemaker, values
from forecastle.cluster.specs import ModelSpec, ServerOptions, valid_name
from forecastle.errors import UsageError

PREFIX = "FORECASTLE_"
DEFAULT_FILE = Path("forecastle.toml")

_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://")
_MODEL_KEYS: dict[str, Callable[[str], Any]] = {
    "source": str,
    "version": valid_name,
    "replicas": values.count,
    "batch_size": values.batch_size,
    "batch_delay": values.delay,
    "timeout": values.duration,
    "queue_size": values.count,
    "start_timeout": values.duration,
    "engine": values.engine,
}
_SERVER_KEYS = (*ServerOptions.__struct_fields__, "models")


def reads(reader: Callable[[str], Any]) -> Callable[[Any, Sequence[Token]], Any]:
    """A converter for one value; its error names the flag, the variable or the key of the file."""

    def convert(_type: Any, tokens: Sequence[Token]) -> Any:
        return _read(reader, tokens[-1].value, _origin(tokens[-1]))

    return convert


def reads_all(reader: Callable[[Iterable[str]], Any]) -> Callable[[Any, Sequence[Token]], Any]:
    """A converter for an option that may be repeated."""

    def convert(_type: Any, tokens: Sequence[Token]) -> Any:
        return _read(reader, [token.value for token in tokens], _origin(tokens[-1]))

    return convert


def environment(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill what no flag gave from ``FORECASTLE_*``.

    An empty variable counts as unset. So does an address: in a cluster with a service called ``forecastle``, Kubernetes
    sets ``FORECASTLE_PORT=tcp://10.0.0.1:8080`` in every container, which is no setting of ours.
    """
    Env(PREFIX, command=False)(app, commands, arguments)
    for argument in arguments:
        argument.tokens[:] = [
            token
            for token in argument.tokens
            if token.source != "env" or (token.value.strip() and not _SERVICE_LINK.match(token.value))
        ]


def file(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill what neither flag nor environment gave from the file that ``--config`` names."""
    tokens = [token for argument in arguments if argument.name == "--config" for token in argument.tokens]
    path = locate(Path(tokens[-1].value) if tokens else None)
    if path is not None:
        settings = _settings(read(path), path)
        Dict(_of(arguments, settings), source=str(path), use_commands_as_keys=False)(app, commands, arguments)


def platform(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill what nothing else gave from what a container, and SageMaker's variables, imply."""
    for key, (source, value) in sagemaker.settings(os.environ, contained=sagemaker.is_container()).items():
        Dict(_of(arguments, {key: value}), source=source, use_commands_as_keys=False)(app, commands, arguments)


def _of(arguments: ArgumentCollection, settings: dict[str, Any]) -> dict[str, Any]:
    """Those of the settings that the command has an option for; what the others have is none of its business."""
    names = {name for argument in arguments for name in argument.names}
    return {key: value for key, value in settings.items() if f"--{key.replace('_', '-')}" in names}


def locate(config: Path | None) -> Path | None:
    """The file to read: the one named, else ``forecastle.toml`` of the working folder if there is one."""
    if config is not None:
        return config
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def read(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, its top-level keys checked.

    Raises:
        UsageError: there is no such file, it is not TOML, or a key is none of ours.
    """
    try:
        tables: dict[str, Any] = msgspec.toml.decode(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"the configuration file {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"the configuration file {path} cannot be read: {reason}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"the configuration file {path} is not valid TOML: {error}") from None
    _check_keys(tables, _SERVER_KEYS, str(path))
    return tables


def models(path: Path, options: ServerOptions) -> list[ModelSpec]:
    """The models of the file's ``[models]`` table, each a source or a table of its own with ``source`` in it.

    A source that lies beside the file is found there, whatever the working folder is. What a model's table leaves out
    is taken from ``options``, and so are replicas that ``options`` counts for it by name.
    """
    tables = read(path).get("models", {})
    if not isinstance(tables, Mapping):
        raise UsageError(f"models in {path} must be a table of NAME = SOURCE; found {tables!r}")
    return [_model(valid_name(name), table, path, options) for name, table in tables.items()]


def _model(name: str, table: Any, path: Path, options: ServerOptions) -> ModelSpec:
    where = f"models.{name}"
    table = {"source": table} if isinstance(table, str) else table
    if not isinstance(table, dict) or not isinstance(table.get("source"), str) or not table["source"]:
        raise UsageError(f'{where} in {path} must be a source in quotes, or a table with source = "…" in it')
    _check_keys(table, (*_MODEL_KEYS, "required", "requirements"), f"{path}, table [{where}]")
    given = dict(table)
    needs = _requirements(given.pop("requirements", None), f"{where}.requirements in {path}", path.parent)
    required = given.pop("required", True)
    if not isinstance(required, bool):
        raise UsageError(f"{where}.required in {path} must be true or false; found {required!r}")
    changes = {
        key: _read(_MODEL_KEYS[key], _scalar(value, f"{where}.{key}", path), f"{where}.{key} in {path}")
        for key, value in given.items()
    }
    if name in options.replicas:
        changes.pop("replicas", None)
    if needs and name not in options.requirements:
        changes["requirements"] = needs
    beside = path.parent / changes["source"]
    changes["source"] = str(beside) if beside.exists() else changes["source"]
    return msgspec.structs.replace(options.spec(name, None), required=required, **changes)


def _requirements(value: Any, where: str, folder: Path) -> tuple[str, ...]:
    """Requirement lines: a list of them, or the name of a file that has them, found beside the file of settings."""
    if value is None:
        return ()
    if isinstance(value, str) and (file := (folder / value).absolute()).is_file():
        return (f"-r {file}",)
    if isinstance(value, list) and value and all(isinstance(line, str) and line for line in value):
        return tuple(value)
    raise UsageError(
        f'{where} must be a list such as ["numpy<2"], or the name of a requirements file that exists; found {value!r}'
    )


def _settings(tables: dict[str, Any], path: Path) -> dict[str, Any]:
    """The file's options as texts, for the same readers that the flags have."""
    settings: dict[str, Any] = {}
    for key, value in tables.items():
        if key in {"replicas", "requirements"} and isinstance(value, dict):
            settings[key] = [f"{name}={_scalar(each, f'{key}.{name}', path)}" for name, each in value.items()]
        elif key != "models":
            settings[key] = _scalar(value, key, path)
    return settings


def _scalar(value: Any, key: str, path: Path) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{key} in {path} must be a number or text; found {value!r}")


def _check_keys(found: Iterable[str], known: Sequence[str], where: str) -> None:
    for key in found:
        if key not in known:
            near = difflib.get_close_matches(key.replace("-", "_").lower(), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise UsageError(f"{where}: there is no setting {key!r}; {hint}")


def _read(reader: Callable[[Any], Any], value: Any, origin: str) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        raise UsageError(f"{origin}: {error}") from None
    except UsageError as error:
        raise UsageError(f"{origin}: {error.message}") from None


def _origin(token: Token) -> str:
    if token.source in {"cli", "env"}:
        return token.keyword or token.value
    return f"{(token.keyword or '').strip('[]')} in {token.source}"
