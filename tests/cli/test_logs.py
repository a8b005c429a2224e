from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path

import pytest

from forecastle.cli import logs
from forecastle.cli.values import Rotation
from forecastle.errors import UsageError


@pytest.fixture(autouse=True)
def _the_logging_of_the_other_tests() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("forecastle")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level, ours.level = before[0], before[1], before[2]


def test_a_record_is_one_line_with_its_request_id() -> None:
    stream = io.StringIO()
    logs.configure("info", stream)
    logging.getLogger("forecastle.http").warning("two\nlines of %s", "a client", extra={"request_id": "r-1"})
    line = stream.getvalue()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4} WARNING forecastle\.http: "
        r"two\\nlines of a client \(request r-1\)\n",
        line,
    )


def test_the_level_holds_for_our_records_and_other_libraries_warn_only() -> None:
    stream = io.StringIO()
    logs.configure("debug", stream)
    logging.getLogger("forecastle.x").debug("ours")
    logging.getLogger("elsewhere").info("theirs")
    assert "ours" in stream.getvalue()
    assert "theirs" not in stream.getvalue()


def test_a_traceback_follows_its_line_indented() -> None:
    stream = io.StringIO()
    logs.configure("info", stream)
    try:
        raise ValueError("inside")
    except ValueError:
        logging.getLogger("forecastle").exception("a hook failed")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("forecastle: a hook failed")
    assert rest[-1] == "    ValueError: inside"
    assert all(line.startswith("    ") for line in rest)


def test_a_terminal_shows_the_level_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    logs.configure("info", stream)
    logging.getLogger("forecastle").error("red")
    assert "\x1b[31mERROR  \x1b[0m" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    logs.configure("info", stream)
    logging.getLogger("forecastle").error("plain")
    assert "\x1b" not in stream.getvalue()


def test_a_record_in_json_is_one_object_on_one_line() -> None:
    stream = io.StringIO()
    logs.configure("info", stream, style="json")
    try:
        raise ValueError("inner")
    except ValueError:
        logging.getLogger("forecastle.http").exception("two\nlines", extra={"request_id": "r-1"})
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("exception").endswith("ValueError: inner")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", told.pop("time"))
    assert told == {"level": "error", "logger": "forecastle.http", "message": "two\nlines", "request_id": "r-1"}


def test_a_file_has_what_stderr_has_and_older_ones_are_kept(tmp_path: Path) -> None:
    stream, file = io.StringIO(), tmp_path / "logs" / "mms.log"
    logs.configure("info", stream, file=file, rotation=Rotation("S", 1))
    logging.getLogger("forecastle").info("first")
    handler = logging.getLogger().handlers[1]
    assert isinstance(handler, TimedRotatingFileHandler)
    handler.doRollover()
    logging.getLogger("forecastle").info("second")
    handler.close()
    assert stream.getvalue().count("\n") == 2
    assert "second" in file.read_text()
    (older,) = file.parent.glob("mms.log.*")
    assert "first" in older.read_text()


def test_a_file_that_cannot_be_written_ends_the_start_with_its_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"the log file .*file/x\.log cannot be written: .*; choose another with"):
        logs.configure("info", io.StringIO(), file=tmp_path / "file" / "x.log")
