"""The server's log: one line for each record on stderr and, if asked for, in a file that is changed as time goes by.

A record carries its request's id as ``extra={"request_id": id}``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

import msgspec

from forecastle.cli.values import Rotation
from forecastle.errors import UsageError

KEPT = 7
"""How many files that have been changed are kept beside the one that is written."""

_COLOURS = {
    logging.DEBUG: "\x1b[2m",
    logging.INFO: "\x1b[32m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[1;31m",
}
_RESET = "\x1b[0m"


class LineFormatter(logging.Formatter):
    r"""``2026-01-31T12:00:00.000+0100 WARNING forecastle.cluster: message (request 5f0c…)``.

    Line breaks of a message are written as ``\n``, so that no text of a client can forge a record; only a traceback has
    lines of its own, indented.
    """

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """Write the record as one line, and its traceback, if it has one, below."""
        moment = (
            f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}{self.formatTime(record, '%z')}"
        )
        level = f"{record.levelname:<7}"
        if self._colour:
            level = f"{_COLOURS.get(record.levelno, '')}{level}{_RESET}"
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        request = getattr(record, "request_id", None)
        line = f"{moment} {level} {record.name}: {message}" + (f" (request {request})" if request else "")
        if record.exc_info:
            line += "\n    " + self.formatException(record.exc_info).replace("\n", "\n    ")
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object on one line: ``time`` (ISO, UTC), ``level``, ``logger``, ``message``, and what else there is."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record; a request's id is ``request_id``, a traceback ``exception``."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        request = getattr(record, "request_id", None)
        if request:
            told["request_id"] = request
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told).decode()


def configure(
    level: str,
    stream: TextIO | None = None,
    *,
    style: str = "text",
    file: Path | None = None,
    rotation: Rotation | None = None,
) -> None:
    """Send Forecastle's records from ``level`` on, and other libraries' from WARNING on, to ``stream`` (stderr).

    With a ``file``, they go there too; ``rotation`` says when another one is begun. ``style`` is text or json.

    Raises:
        UsageError: the file cannot be written.
    """
    stream = stream or sys.stderr
    made: Callable[[bool], logging.Formatter] = lambda colour: (  # noqa: E731
        JsonFormatter() if style == "json" else LineFormatter(colour=colour)
    )
    handlers: list[logging.Handler] = [logging.StreamHandler(stream)]
    handlers[0].setFormatter(made(stream.isatty() and "NO_COLOR" not in os.environ))
    if file is not None:
        handlers.append(_opened(file, rotation or Rotation("midnight", 1)))
        handlers[1].setFormatter(made(False))
    logging.basicConfig(level=logging.WARNING, handlers=handlers, force=True)
    logging.getLogger("forecastle").setLevel(level.upper())


def _opened(file: Path, rotation: Rotation) -> logging.Handler:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return TimedRotatingFileHandler(
            file, when=rotation.when, interval=rotation.interval, backupCount=KEPT, encoding="utf-8"
        )
    except OSError as error:
        raise UsageError(
            f"the log file {file} cannot be written: {error.strerror}; choose another with --log-file"
        ) from None
