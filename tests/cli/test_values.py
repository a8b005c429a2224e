from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forecastle.cli import values
from forecastle.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2ms", 0.002), ("0.5s", 0.5), ("1.5", 1.5), ("0", 0), ("2m", 120), ("1h", 3600), (" 3 s ", 3), (".5", 0.5)],
)
def test_a_duration_is_a_number_of_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert values.delay(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "count"),
    [("25MB", 25_000_000), ("16MiB", 16 * 2**20), ("1000000", 10**6), ("1.5kb", 1500), ("2 GiB", 2**31), ("7b", 7)],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(text: str, count: int) -> None:
    assert values.size(text) == count


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        *((values.delay, text) for text in ("", "-1", "2 parsecs", "1e3", "nan", "inf", "ms", "1.2.3")),
        *((values.duration, text) for text in ("0", "0ms", "-1")),
        *((values.size, text) for text in ("", "-1", "25 pounds", "0", "0.1b", "MB")),
        *((values.port, text) for text in ("", "-1", "65536", "80.5", "http", "٣", "1_000")),
        *((values.count, text) for text in ("", "0", "-1", "1.5", "many", "9" * 5000)),
        *((values.log_level, text) for text in ("", "loud", "10")),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_found_and_expected(reader: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)^'.*(expected)"):
        reader(text)


def test_the_log_level_is_read_in_any_case() -> None:
    assert values.log_level("WARNING") == "warning"


def test_replicas_are_counted_by_name_or_for_all() -> None:
    assert values.replicas(["a=2", "3"]) == [("a", 2), ("*", 3)]
    assert values.replicas(["a=2,b=4 1"]) == [("a", 2), ("b", 4), ("*", 1)]
    with pytest.raises(ValueError, match="'two' is not a count"):
        values.replicas(["a=two"])
    with pytest.raises(UsageError, match="cannot be a model's name"):
        values.replicas(["/=2"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 H", ("H", 1)),
        ("h", ("H", 1)),
        ("30 M", ("M", 30)),
        (" 7 d ", ("D", 7)),
        ("midnight", ("midnight", 1)),
        ("w0", ("W0", 1)),
    ],
)
def test_a_time_of_rotation_is_read_as_mms_users_write_it(text: str, expected: tuple[str, int]) -> None:
    assert values.rotation(text) == expected


@pytest.mark.parametrize("text", ["", "H 1", "0 H", "1 year", "W7", "-1 H", "1.5 H"])
def test_what_is_no_time_of_rotation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of rotation: expected one like '1 H'"):
        values.rotation(text)
