"""Reading one value of an option: the same text means the same as flag, environment variable and key of the file.

A reader takes text and raises ``ValueError`` with a sentence that says what was expected; the caller knows the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from forecastle.cluster.specs import valid_name
from forecastle.models.engines import Engine

LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["text", "json"]
MetricsTarget = Literal["log", "csv"]

_NUMBER_AND_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-zµ]*)\s*")
_SECONDS = {"": 1.0, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def port(text: str) -> int:
    """A TCP port; 0 lets the system choose."""
    number = _integer(text)
    if number is None or not 0 <= number <= 65535:
        raise ValueError(f"{text!r} is not a port: expected a whole number from 0 to 65535 (0: any free port)")
    return number


def count(text: str) -> int:
    """A whole number of at least one."""
    number = _integer(text)
    if number is None or number < 1:
        raise ValueError(f"{text!r} is not a count: expected a whole number of at least 1")
    return number


def whole(text: str) -> int:
    """A whole number of at least zero."""
    number = _integer(text)
    if number is None or number < 0:
        raise ValueError(f"{text!r} is not a number of replicas: expected a whole number of at least 0")
    return number


def delay(text: str) -> float:
    """A duration in seconds that may be 0: ``2ms``, ``0.5s``, ``1.5`` (seconds), ``2m``, ``1h``."""
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None or (unit := match[2].lower()) not in _SECONDS:
        raise ValueError(f"{text!r} is not a duration: expected a number of seconds, or one like 2ms, 0.5s or 2m")
    return float(match[1]) * _SECONDS[unit]


def duration(text: str) -> float:
    """A duration in seconds, more than 0, written as for ``delay``."""
    seconds = delay(text)
    if seconds <= 0:
        raise ValueError(f"{text!r} is no time at all: expected a duration of more than 0")
    return seconds


def size(text: str) -> int:
    """A number of bytes, more than 0: ``25MB`` (decimal), ``16MiB`` (binary), ``1000000``."""
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None or (unit := match[2].lower()) not in _BYTES:
        raise ValueError(f"{text!r} is not a size: expected a number of bytes, or one like 25MB or 16MiB")
    number = int(float(match[1]) * _BYTES[unit])
    if number < 1:
        raise ValueError(f"{text!r} is no size at all: expected at least one byte")
    return number


def room(text: str) -> int:
    """A number of bytes that may be 0, written as for ``size``."""
    return 0 if text.strip() == "0" else size(text)


def batch_size(text: str) -> int:
    """How many requests are predicted together at the most; -1 for as many as pay and are in time."""
    if text.strip() == "-1":
        return -1
    number = _integer(text)
    if number is None or number < 1:
        raise ValueError(
            f"{text!r} is not a batch size: expected a whole number of at least 1, or -1 for an adaptive one"
        )
    return number


def log_level(text: str) -> str:
    """One of the names in ``LogLevel``, in any case."""
    level = text.strip().lower()
    if level not in get_args(LogLevel):
        raise ValueError(f"{text!r} is not a log level: expected one of {', '.join(get_args(LogLevel))}")
    return level


def engine(text: str) -> str:
    """One of the names in ``Engine``."""
    name = text.strip().lower()
    if name not in get_args(Engine):
        raise ValueError(f"{text!r} is not an engine: expected one of {', '.join(get_args(Engine))}")
    return name


class Rotation(NamedTuple):
    """When another log file is begun: after ``interval`` times what ``when`` says, as the standard library has it."""

    when: str
    interval: int


def rotation(text: str) -> Rotation:
    """``1 H`` (hours), ``30 M`` (minutes), ``10 S``, ``7 D``, ``midnight``, or ``W0`` (Monday) to ``W6``."""
    number, _, when = text.strip().rpartition(" ")
    interval = _integer(number or "1")
    if interval and (when.upper() in {"S", "M", "H", "D"} or re.fullmatch(r"W[0-6]", when.upper())):
        return Rotation(when.upper(), interval)
    if interval and when.lower() == "midnight":
        return Rotation("midnight", interval)
    raise ValueError(f"{text!r} is not a time of rotation: expected one like '1 H', '30 M', midnight or W0 (Monday)")


def rotation_text(text: str) -> str:
    """A time of rotation, checked and left as text."""
    rotation(text)
    return text


class NameCount(tuple[str, int]):
    """A model's name and its number of replicas; a class of its own for the help page, which shows its name."""

    __slots__ = ()


def replicas(items: Iterable[str]) -> list[NameCount]:
    """Counts by model name from ``NAME=N``; a plain ``N`` is everyone else's, under the name ``"*"``.

    One item may hold several, apart by commas or blanks, so that one environment variable can say them all.
    """
    counts: list[NameCount] = []
    for item in items:
        for part in item.replace(",", " ").split():
            name, equals, number = part.rpartition("=")
            counts.append(NameCount((valid_name(name) if equals else "*", count(number))))
    return counts


class NameFile(tuple[str, str]):
    """A model's name and the path of a file; a class of its own for the help page, which shows its name."""

    __slots__ = ()


def files(items: Iterable[str]) -> list[NameFile]:
    """Absolute paths by model name from ``NAME=FILE``; a plain ``FILE`` is everyone else's, under the name ``"*"``."""
    found: list[NameFile] = []
    for item in items:
        name, equals, path = item.rpartition("=")
        absolute = Path(path).expanduser().absolute()
        if not absolute.is_file():
            raise ValueError(f"there is no file {path!r}: expected one of requirements, for instance requirements.txt")
        found.append(NameFile((valid_name(name) if equals else "*", str(absolute))))
    return found


class Option(tuple[str, "float | str | dict[str, float]"]):
    """The name and the value of an option of a policy; a class of its own for the help page, which shows its name."""

    __slots__ = ()


def policy_options(items: Iterable[str]) -> list[Option]:
    """Options of a policy from ``NAME=VALUE``; a value is a number, a word, or ``MODEL:NUMBER,MODEL:NUMBER``."""
    found: list[Option] = []
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name or not text:
            raise ValueError(f"{item!r} is not an option of a policy: expected NAME=VALUE, for instance epsilon=0.1")
        found.append(Option((name, _option(text))))
    return found


def _option(text: str) -> float | str | dict[str, float]:
    try:
        if ":" in text:
            return {name: float(number) for name, _, number in (part.rpartition(":") for part in text.split(","))}
        return float(text)
    except ValueError:
        return text


def _integer(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
