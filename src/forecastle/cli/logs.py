"""The server's log: one line for each record on stderr, with the request id where the record belongs to a request."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

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

    A record carries its request's id as ``extra={"request_id": id}``. Line breaks of a message are written as ``\n``,
    so that no text of a client can forge a record; only a traceback has lines of its own, indented.
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


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send Forecastle's records from ``level`` on, and other libraries' from WARNING on, to ``stream`` (stderr)."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter(colour=stream.isatty() and "NO_COLOR" not in os.environ))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("forecastle").setLevel(level.upper())
