from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadOutput
from forecastle.messages import Response
from forecastle.serving.output import as_json, from_text


@pytest.mark.parametrize(
    ("body", "content_type", "value"),
    [
        (b'{"a": [1, 2]}', "application/json", {"a": [1, 2]}),
        (b" 1.0\n", "application/json; charset=utf-8", 1.0),
        (b'"1"', "application/json", "1"),
        (b"1.0", "text/plain", 1.0),
        (b"[1, 2]", "text/plain; charset=utf-8", [1, 2]),
        (b"null", "text/plain", None),
        (b"007", "text/plain", "007"),
        (b"NaN", "text/plain", "NaN"),
        (b"(749, 600)", "text/plain", "(749, 600)"),
        ("é".encode(), "text/plain", "é"),
        (b"", "text/plain", ""),
        (b"1,2\n", "text/csv", "1,2\n"),
        (b"\x00\xff", "application/octet-stream", "AP8="),
    ],
)
def test_an_answer_becomes_the_json_value_that_it_is(body: bytes, content_type: str, value: object) -> None:
    assert json.loads(as_json(Response(body, content_type))) == value


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{", "application/json"),
        (b'"\xff"', "application/json"),
        (b"\xff", "text/plain"),
        (b"NaN", "application/json"),
    ],
)
def test_what_is_not_what_it_is_called_is_a_bad_output(body: bytes, content_type: str) -> None:
    with pytest.raises(BadOutput):
        as_json(Response(body, content_type))


def test_nesting_without_end_is_no_json() -> None:
    assert json.loads(from_text(b"[" * 100_000)) == "[" * 100_000
    with pytest.raises(BadOutput):
        as_json(Response(b"[" * 100_000 + b"]" * 100_000, "application/json"))


@given(st.binary())
def test_whatever_text_it_is_the_result_is_one_json_value(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        with pytest.raises(BadOutput):
            from_text(text)
    else:
        json.loads(from_text(text))
