"""The codecs: JSON, CSV and text; NaN and infinity; what a value can be written as."""

from __future__ import annotations

import base64
import csv
import datetime
import io
import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle import media
from forecastle.errors import BadInput, BadOutput

JSON, CSV, NPY, NPZ, BYTES = media.JSON, media.CSV, media.NPY, media.NPZ, media.BYTES


@pytest.mark.parametrize(
    "content_type", [JSON, "text/json", "application/problem+json", "application/json;charset=UTF-8"]
)
def test_json_is_read_whatever_it_calls_itself(content_type: str) -> None:
    assert media.decode('{"größe": [1, 2.5, null]}'.encode(), content_type) == {"größe": [1, 2.5, None]}


def test_json_in_another_charset_is_read() -> None:
    assert media.decode('"größe"'.encode("utf-16"), "application/json; charset=utf-16") == "größe"


def test_a_byte_order_mark_is_dropped() -> None:
    assert media.decode(b"\xef\xbb\xbf[1]", JSON) == [1]
    assert media.decode(b"\xef\xbb\xbf1,2\n", CSV) == [[1.0, 2.0]]
    assert media.decode(b"\xef\xbb\xbfhi", "text/plain") == "hi"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty; expected JSON"),
        (b"  \n", "empty; expected JSON"),
        (b"[1, 2", "ends too early (5 bytes were read)"),
        (b"[1, x]", "(byte 4)"),
        (b"[NaN]", "(byte 1)"),
        (b"[1] 2", "trailing characters (byte 5)"),
        (b"{'a': 1}", "(byte 1)"),
        (b"[1e999]", "out of range"),
        (b'["\xff"]', "UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xef\xbb\xbf[1", "ends too early"),
    ],
)
def test_malformed_json_is_refused_with_its_place(body: bytes, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        media.decode(body, JSON)
    assert said in caught.value.message


def test_csv_is_rows_of_numbers_and_texts() -> None:
    body = b'1,2.5,-3e2\r\n\r\n4,"a, ""b""",\n007,1_000,nan\n'
    rows = media.decode(body, "text/csv; charset=utf-8; header=absent")
    assert rows[:2] == [[1.0, 2.5, -300.0], [4.0, 'a, "b"', ""]]
    assert rows[2][:2] == [7.0, "1_000"]
    assert math.isnan(rows[2][2])


def test_csv_of_no_rows_is_an_empty_list() -> None:
    assert media.decode(b"", CSV) == []


@pytest.mark.parametrize("body", [b'1,2\n3,"4', b'1\n2\n"a"b\n', b"1,2\n" + b"x" * 200_000])
def test_malformed_csv_is_refused_with_its_line(body: bytes) -> None:
    with pytest.raises(BadInput, match=r"not CSV: .*\(line \d\)"):
        media.decode(body, CSV)


def test_text_follows_its_charset() -> None:
    assert media.decode("Größe".encode(), "text/plain") == "Größe"
    assert media.decode("Größe".encode("latin-1"), "text/plain; charset=ISO-8859-1") == "Größe"
    assert media.decode("形".encode("shift_jis"), "text/csv; charset=shift_jis") == [["形"]]


@pytest.mark.parametrize("charset", ["klingon", "base64", "unicode_escape", "idna", "rot13"])
def test_a_charset_that_is_no_text_encoding_is_refused_by_name(charset: str) -> None:
    with pytest.raises(BadInput, match="charset"):
        media.decode(b"abc", f"text/plain; charset={charset}")


def test_bytes_that_are_not_text_are_refused_with_their_place() -> None:
    with pytest.raises(BadInput, match="at byte 2"):
        media.decode(b"ab\xff", "text/plain")


@pytest.mark.parametrize("content_type", ["", BYTES, "image/jpeg", "nonsense", "application/x-www-form-urlencoded"])
def test_decoding_never_guesses(content_type: str) -> None:
    assert media.decode(b"[1]", content_type) == b"[1]"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_nan_and_infinity_become_null_wherever_they_stand(number: float, dtype: str) -> None:
    array = np.array([number, 1.0], dtype)
    for value in (array, [array[0], array[1]], array.tolist(), {"a": array}, array[0], np.array(number, dtype)):
        assert b"null" in media.encode(value, JSON)
        assert not {b"NaN", b"nan", b"inf", b"Inf"} & {media.encode(value, JSON)}
    assert orjson.loads(media.encode(array, JSON)) == [None, 1.0]
    assert media.encode(array, CSV) == b'""\n1.0\n'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 + 1, 2**53 + 1),
        (np.int64(2**53 + 1), 2**53 + 1),
        (np.array([2**63 - 1, -(2**63)]), [2**63 - 1, -(2**63)]),
        (np.array([2**64 - 1], "uint64"), [2**64 - 1]),
        (np.array(["a", "ö"]), ["a", "ö"]),
        (np.array(["a", None], object), ["a", None]),
        (np.array(3), 3),
        (np.array([]), []),
        (np.zeros((2, 0)), [[], []]),
        (np.array([True, False]), [True, False]),
        (np.bool_(True), True),
        (np.float16(0.5), 0.5),
        (
            {
                1,
            },
            [1],
        ),
        ((1, "a"), [1, "a"]),
        (datetime.date(2026, 12, 1), "2026-12-01"),
        (np.datetime64("2026-12-01"), "2026-12-01"),
        ({"a": [np.float32(0.1)]}, {"a": [float(np.float32(0.1))]}),
        (b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
    ],
)
def test_json_keeps_what_was_given(value: Any, expected: Any) -> None:
    assert json.loads(media.encode(value, JSON)) == expected


@given(st.lists(st.floats() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])) | st.none()))
def test_what_json_writes_any_parser_reads(values: list[Any]) -> None:
    finite = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    assert json.loads(media.encode(values, JSON)) == finite
    assert json.loads(media.encode(values, JSON)) == media.decode(media.encode(values, JSON), JSON)


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1)))
def test_numbers_survive_csv(rows: list[list[float]]) -> None:
    assert media.decode(media.encode(rows, CSV), CSV) == rows


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([[1, 2.5], [None, True]], "1,2.5\n,true\n"),
        ([1, 2], "1\n2\n"),
        (np.array([[1.5, 2.0]], "float32"), "1.5,2.0\n"),
        ([["a,b", "ö"]], '"a,b",ö\n'),
        ([np.float32(0.5), np.int64(3)], "0.5\n3\n"),
    ],
)
def test_csv_is_written_row_by_row(value: Any, written: str) -> None:
    assert media.encode(value, CSV).decode() == written
    assert list(csv.reader(io.StringIO(written)))


def test_text_and_bytes_are_written_as_they_are() -> None:
    assert media.encode("Größe", media.TEXT) == "Größe".encode()
    assert media.encode("Größe", "text/plain; charset=latin-1") == "Größe".encode("latin-1")
    for value in (b"ab", bytearray(b"ab"), memoryview(b"ab")):
        assert media.encode(value, BYTES) == b"ab"
        assert media.encode(value, "image/png") == b"ab"


@pytest.mark.parametrize(
    ("value", "content_type"),
    [
        (object(), JSON),
        ({"a": {1, object()}}, JSON),
        ("\ud800", JSON),
        (1j, JSON),
        (np.array([1j]), JSON),
        ([[[1]]], CSV),
        ([{"a": 1}], CSV),
        (3, CSV),
        ([1, [2]], NPY),
        ([None], NPY),
        ({"a": np.array([None])}, NPZ),
        (3, NPZ),
        ([1], "text/plain"),
        ("ö", "text/plain; charset=ascii"),
        ("ö", "text/plain; charset=klingon"),
        ([1], "image/png"),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_type_and_the_content_type(value: Any, content_type: str) -> None:
    with pytest.raises(BadOutput) as caught:
        media.encode(value, content_type)
    assert type(value).__name__ in caught.value.message
    assert content_type in caught.value.message


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(BadOutput):
        media.encode(value, JSON)


@pytest.mark.parametrize(
    ("value", "offered"),
    [
        (b"", (BYTES,)),
        (bytearray(), (BYTES,)),
        ("", (JSON, media.TEXT)),
        (None, (JSON,)),
        (1.5, (JSON,)),
        ([], (JSON,)),
        ([1, 2], (JSON, CSV, NPY)),
        ([[1, 2]], (JSON, CSV, NPY)),
        ([[[1]]], (JSON, NPY)),
        (["a"], (JSON, CSV)),
        ([{"a": 1}], (JSON,)),
        ({}, (JSON,)),
        ({"a": 1}, (JSON,)),
        ({"a": np.zeros(1)}, (JSON, NPZ)),
        (np.zeros(()), (JSON, NPY)),
        (np.zeros((1, 2)), (JSON, NPY, CSV)),
        (np.zeros((1, 2, 3)), (JSON, NPY)),
        (np.array([None]), (JSON,)),
        (np.float32(1), (JSON,)),
    ],
)
def test_the_offers_are_what_can_be_written(value: Any, offered: tuple[str, ...]) -> None:
    assert media.offers(value) == offered
    for content_type in offered:
        media.encode(value, content_type)


def test_media_works_without_numpy() -> None:
    script = """if True:
        import sys
        sys.modules["numpy"] = None
        from forecastle import media
        assert media.decode(b"[1]", "application/json") == [1]
        assert media.decode(b"x", "application/x-npy") == b"x"
        assert media.offers([[1]]) == ("application/json", "text/csv")
        assert media.encode([[1.5]], "text/csv") == b"1.5\\n"
    """
    subprocess.run([sys.executable, "-c", script], check=True)
