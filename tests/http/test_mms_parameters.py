from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from forecastle.errors import BadInput
from forecastle.http.mms_parameters import Parameters, parameters


def read(query: str = "", body: bytes = b"", content_type: str = "application/json") -> Parameters:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", content_type.encode())]
    scope = {"type": "http", "method": "POST", "path": "/models", "query_string": query.encode(), "headers": headers}
    return asyncio.run(parameters(Request(scope, receive)))


def test_the_query_goes_before_the_body() -> None:
    found = read("url=a&batch_size=2", b'{"url": "b", "model_name": "m", "batch_size": 3}')
    assert (found.text("url"), found.text("model_name"), found.count("batch_size", 1)) == ("a", "m", 2)


@pytest.mark.parametrize("body", [b'{"n": 1, "f": true}', b'{"n": "1", "f": "true"}', b"{'n': '1', 'f': True}"])
def test_numbers_and_flags_may_be_texts_and_quotes_single(body: bytes) -> None:
    found = read(body=body)
    assert (found.count("n", 0), found.flag("f", default=False)) == (1, True)


def test_what_is_not_sent_is_the_default() -> None:
    found = read(body=b"ignored", content_type="text/plain")
    assert (found.text("url"), found.count("n", 7), found.flag("f", default=True)) == ("", 7, True)
    assert "n" not in found
    assert "n" in read("n=0")


@pytest.mark.parametrize("body", [b"{", b"[1]", b"7", b"'a'", b"{'a': open('x')}", b"(" * 100_000, b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput, match="the body"):
        read(body=body)


@pytest.mark.parametrize("value", ["x", "1.5", "-1", "", "99999999999", "9" * 5000])
def test_a_number_that_is_none_is_named(value: str) -> None:
    with pytest.raises(BadInput, match=r"Parameter n is .*: it must be a whole number, 0 or more"):
        read(f"n={value}").count("n", 1)


def test_values_of_another_type_are_named() -> None:
    found = read(body=b'{"url": 7, "n": true, "f": [1]}')
    assert "f" in found
    with pytest.raises(BadInput, match="Parameter url is 7: it must be a text"):
        found.text("url")
    with pytest.raises(BadInput, match="Parameter n is 'True'"):
        found.count("n", 1)
    with pytest.raises(BadInput, match=r"Parameter f is '\[1\]': it must be true or false"):
        found.flag("f", default=True)
