"""The limit on a body, however its size becomes known."""

from __future__ import annotations

import json
import socket

import httpx
import pytest

from http_fakes import MemoryCore, Running

LIMIT = 100_000
HEAD = b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\n"


def _refused(reply: tuple[int, dict[str, str], bytes]) -> None:
    status, headers, body = reply
    error = json.loads(body)
    assert (status, headers["connection"], error["type"]) == (413, "close", "PayloadTooLarge")
    assert "--max-body" in error["message"]
    assert str(LIMIT) in error["message"]


def test_a_body_of_exactly_the_limit_is_taken(client: httpx.Client, core: MemoryCore) -> None:
    assert client.post("/resnet-18/predict", content=b"1" * LIMIT).status_code == 200
    assert len(core.taken().request.parts[0].data) == LIMIT


def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(server: Running, core: MemoryCore) -> None:
    with server.connect() as connection:
        connection.send(HEAD + b"Content-Length: 100001\r\n\r\n")
        _refused(connection.reply())
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.closed()
    assert core.tickets.empty()


def test_a_client_that_expects_100_is_refused_instead(server: Running) -> None:
    with server.connect() as connection:
        connection.send(HEAD + b"Content-Length: 999999999999\r\nExpect: 100-continue\r\n\r\n")
        _refused(connection.reply())


def test_a_chunked_body_is_refused_once_it_is_too_large(server: Running, core: MemoryCore) -> None:
    with server.connect() as connection:
        connection.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            connection.send(b"c350\r\n" + b"x" * 50_000 + b"\r\n")
        _refused(connection.reply())
    assert core.tickets.empty()


@pytest.mark.parametrize("headers", [{"Content-Length": "5000000"}, {"Transfer-Encoding": "chunked"}])
def test_a_client_that_sends_it_all_still_reads_why_it_was_refused(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    reply = client.post("/resnet-18/predict", content=(b"x" * 50_000 for _ in range(100)), headers=headers)
    assert (reply.status_code, reply.json()["type"]) == (413, "PayloadTooLarge")


def test_a_body_in_many_pieces_arrives_in_one(client: httpx.Client, core: MemoryCore) -> None:
    reply = client.post("/resnet-18/predict", content=(b"%05d" % i for i in range(2000)))
    assert reply.status_code == 200
    assert core.taken().request.parts[0].data == b"".join(b"%05d" % i for i in range(2000))


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json"}])
def test_an_empty_body_is_a_part_without_bytes(client: httpx.Client, core: MemoryCore, headers: dict[str, str]) -> None:
    client.post("/invocations", headers=headers)
    [part] = core.taken().request.parts
    assert (part.name, part.data) == ("", b"")
