"""The MMS 0.x contract over HTTP."""

from __future__ import annotations

import json

import httpx
import pytest

from forecastle.messages import Part, Response
from http_fakes import MemoryCore

PREDICT = "/resnet-18/predict"
JPEG = b"\xff\xd8\x00\r\n\xff\xd9"


def test_a_picture_posted_as_input0_is_one_named_part(client: httpx.Client, core: MemoryCore) -> None:
    core.answer = lambda _: Response(b'[[{"class": "cat"}]]', "application/json")
    reply = client.post(PREDICT, files={"input0": ("kitten.jpg", JPEG, "image/jpeg")})
    assert reply.json() == {"prediction": [[{"class": "cat"}]]}
    assert core.taken().request.parts == [Part("input0", "image/jpeg", JPEG)]


def test_several_inputs_are_several_parts(client: httpx.Client, core: MemoryCore) -> None:
    client.post(PREDICT, files={"größe": (None, b"[1]"), "data": ("a.npy", b"N", "application/x-npy")})
    assert core.taken().request.parts == [Part("größe", "", b"[1]"), Part("data", "application/x-npy", b"N")]


def test_form_values_are_parts_without_a_type(client: httpx.Client, core: MemoryCore) -> None:
    client.post(PREDICT, data={"data": "[{'input_sentence': 'on the exchange'}]"})
    assert core.taken().request.parts == [Part("data", "", b"[{'input_sentence': 'on the exchange'}]")]


@pytest.mark.parametrize("body", [b"[1, 2]", b'{"a": "b=c&d"}'])
def test_json_that_curl_calls_a_form_is_json(client: httpx.Client, core: MemoryCore, body: bytes) -> None:
    client.post(PREDICT, content=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert core.taken().request.parts == [Part("", "application/json", body)]


def test_a_raw_body_is_a_part_without_a_name(client: httpx.Client, core: MemoryCore) -> None:
    client.post(PREDICT, content=JPEG, headers={"Content-Type": "image/jpeg"})
    assert core.taken().request.parts == [Part("", "image/jpeg", JPEG)]


def test_a_malformed_form_is_one_sentence(client: httpx.Client, core: MemoryCore) -> None:
    for content_type in ("multipart/form-data", "multipart/form-data; boundary=b"):
        reply = client.post(PREDICT, content=b"--x", headers={"Content-Type": content_type})
        assert (reply.status_code, reply.json()["type"]) == (400, "BadInput")
        assert "boundary" in reply.json()["message"]
    assert core.tickets.empty()


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_a_json_answer_is_wrapped_and_keeps_its_type(client: httpx.Client, core: MemoryCore, content_type: str) -> None:
    core.answer = lambda _: Response('["größe", null]'.encode(), content_type)
    reply = client.post(PREDICT, json=[1])
    assert reply.headers["content-type"] == content_type
    assert json.loads(reply.content) == {"prediction": ["größe", None]}


@pytest.mark.parametrize("content_type", ["image/jpeg", "text/csv", "application/jsonlines"])
def test_any_other_answer_goes_out_as_it_is(client: httpx.Client, core: MemoryCore, content_type: str) -> None:
    core.answer = lambda _: Response(JPEG, content_type)
    reply = client.post(PREDICT, json=[1])
    assert (reply.headers["content-type"], reply.content) == (content_type, JPEG)
