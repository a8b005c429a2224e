"""Requests that come whole are answered on a shorter way: nobody may tell which way theirs was."""

from __future__ import annotations

import re
import socket
import time
from itertools import pairwise

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecastle.http.app import InferenceApp
from forecastle.http.stats import HttpStats
from forecastle.messages import Response
from http_fakes import WAIT, MemoryCore, Running, running

REQUESTS = (
    b"POST /resnet-18/predict HTTP/1.1\r\nhost: x\r\nx-request-id: a\r\ncontent-length: 3\r\n\r\n[1]"
    b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n"
    b"POST /nothing/predict HTTP/1.1\r\nhost: x\r\nx-request-id: b\r\ncontent-length: 1\r\n\r\n1"
    b"POST /no/such/path HTTP/1.1\r\nhost: x\r\nx-request-id: c\r\ncontent-length: 0\r\n\r\n"
    b"POST /resnet-18/predict HTTP/1.1\r\nhost: x\r\nx-request-id: d\r\ntransfer-encoding: chunked\r\n\r\n"
    b"2\r\n[1\r\n2\r\n,2\r\n1\r\n]\r\n0\r\n\r\n"
    b"POST /resnet%2d18/predict?x=1 HTTP/1.1\r\nhost: x\r\nx-request-id: e\r\ncontent-length: 1\r\n\r\n7"
    b"POST /resnet-18/predict HTTP/1.1\r\nhost: x\r\nx-request-id: f\r\nconnection: close\r\ncontent-length: 1\r\n\r\n9"
)


def replies(server: Running, pieces: list[bytes], core: MemoryCore) -> list[bytes]:
    """Send pieces, each once the one before has been parsed, and return all that comes back, without dates."""
    with socket.create_connection(("127.0.0.1", server.port), WAIT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
            server.call(lambda: None)
        data = b""
        while received := connection.recv(65536):
            data += received
    core.tickets = type(core.tickets)()
    return re.split(rb"(?=HTTP/1\.1 )", re.sub(rb"date: [^\r]*\r\n|x-request-id: [0-9a-f]{20}\r\n", b"", data))[1:]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cuts=st.lists(st.integers(1, len(REQUESTS) - 1), max_size=8, unique=True))
def test_however_requests_are_cut_into_pieces_the_replies_are_the_same(
    server: Running, core: MemoryCore, stats: HttpStats, cuts: list[int]
) -> None:
    whole = replies(server, [REQUESTS], core)
    assert [int(reply[9:12]) for reply in whole] == [200, 200, 404, 404, 200, 200, 200]
    places = [0, *sorted(cuts), len(REQUESTS)]
    assert replies(server, [REQUESTS[a:b] for a, b in pairwise(places)], core) == whole
    assert stats.in_flight == 0


def test_an_answer_that_takes_longer_than_an_idle_connection_is_kept_arrives(core: MemoryCore) -> None:
    core.answer = lambda _: None
    with (
        running(InferenceApp(core, HttpStats(), timeout=30.0, max_body=1000), keep_alive=1) as server,
        socket.create_connection(("127.0.0.1", server.port), WAIT) as connection,
    ):
        quick = b"POST /nothing/predict HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n1"
        slow = b"POST /resnet-18/predict HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n1"
        connection.sendall(quick + slow)  # the reply to the first leaves the connection idle for a moment
        ticket = core.taken()
        time.sleep(1.3)  # the one thing that is waited for is time
        server.call(lambda: ticket.settle(Response(b"7", "application/json")))
        data = b""
        while b'"prediction":7' not in data.replace(b" ", b""):
            received = connection.recv(65536)
            assert received, data
            data += received
        assert connection.recv(1) == b""  # and now it is idle


@pytest.mark.parametrize(("name", "value"), [("x-a", "b\r\nx-c: d"), ("x a", "b"), ("x-a", "ü"), ("", "b")])
def test_a_header_that_cannot_be_sent_is_the_hooks_fault(
    core: MemoryCore, client: httpx.Client, name: str, value: str
) -> None:
    core.answer = lambda _: Response(b"1", "application/json", {name: value})
    reply = client.post("/resnet-18/predict", json=1)
    assert (reply.status_code, reply.json()["type"]) == (500, "BadOutput")
    assert "x-c" not in reply.headers
