"""The server on its sockets: where it listens, what it refuses, how it stops."""

from __future__ import annotations

import asyncio
import json
import signal
import socket

import httpx
import pytest

from forecastle.errors import AddressInUse, Cancelled, UsageError
from forecastle.http.app import InferenceApp
from forecastle.http.protocol import Protocol
from forecastle.http.server import HttpServer, bind
from forecastle.http.stats import HttpStats
from forecastle.messages import Response
from http_fakes import MemoryCore, Running, running

PREDICT = "/resnet-18/predict"


def _app(core: MemoryCore) -> InferenceApp:
    return InferenceApp(core, HttpStats(), timeout=30.0, max_body=1000)


def test_a_taken_port_is_named_with_its_host_and_option() -> None:
    [taken] = bind("127.0.0.1", 0, "--port")
    with taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse, match=rf"port {port} on 127\.0\.0\.1 .*--management-port"):
            bind("127.0.0.1", port, "--management-port")


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "999.1.1.1", "a" * 300])
def test_a_host_that_is_not_here_is_named(host: str) -> None:
    with pytest.raises(UsageError, match="--host") as caught:
        bind(host, 0, "--port")
    assert host in caught.value.message


def test_start_fails_with_the_error_of_the_port(core: MemoryCore) -> None:
    [taken] = bind("127.0.0.1", 0, "--port")
    with taken, pytest.raises(AddressInUse):
        asyncio.run(HttpServer(_app(core), "127.0.0.1", taken.getsockname()[1]).start())


def test_localhost_has_one_port_for_all_its_addresses() -> None:
    sockets = bind("localhost", 0, "--port")
    assert len({each.getsockname()[1] for each in sockets}) == 1
    for each in sockets:
        each.close()


@pytest.mark.parametrize("host", ["::1", "::", ""])
def test_ipv6_and_all_addresses_are_served(core: MemoryCore, host: str) -> None:
    with running(_app(core), host) as server:
        for there in ["[::1]"] if host == "::1" else ["[::1]", "127.0.0.1"]:
            assert httpx.get(f"http://{there}:{server.port}/live").status_code == 200


def test_the_signals_stay_with_the_caller(core: MemoryCore) -> None:
    async def main() -> None:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        server = HttpServer(_app(core), "127.0.0.1", 0)
        await server.start()
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
        await server.stop(1.0)

    asyncio.run(main())


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /live HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
        b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /l\xc3\xa4ve HTTP/1.1\r\nHost: t\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_our_shape_and_closed(server: Running, sent: bytes) -> None:
    with server.connect() as connection:
        connection.send(sent)
        status, headers, body = connection.reply()
        assert (status, headers["connection"]) == (400, "close")
        assert json.loads(body)["request_id"] == headers["x-request-id"]
        assert connection.closed()


def test_a_connection_that_says_nothing_is_closed(core: MemoryCore) -> None:
    with running(_app(core), keep_alive=1) as server, server.connect() as connection:
        assert connection.closed()


def test_no_reply_names_the_software(client: httpx.Client) -> None:
    headers = client.get("/live").headers
    assert "server" not in headers
    assert "date" in headers


@pytest.mark.parametrize("sent", [b"P", b"POST /live HTTP/1.1\r\nHost: t\r\nX-Slow: "], ids=["first byte", "a header"])
def test_a_head_that_does_not_arrive_is_given_up(server: Running, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(Protocol, "head_seconds", 0.1)
    with server.connect() as connection:
        connection.send(sent)
        status, headers, body = connection.reply()
        assert (status, headers["connection"]) == (408, "close")
        assert json.loads(body)["message"] == "the head of the request did not arrive within 0.1 s: send it faster"
        assert connection.closed()


def test_a_head_in_several_pieces_is_read_and_the_next_request_too(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Protocol, "head_seconds", 20.0)
    with server.connect() as connection:
        for _ in range(2):
            for piece in (b"GET /li", b"ve HTTP/1.1\r\nHo", b"st: t\r\n\r\n"):
                connection.send(piece)
            assert connection.reply()[0] == 200


def test_stopping_closes_idle_connections_and_the_port(server: Running) -> None:
    with server.connect() as connection:
        connection.send(b"GET /live HTTP/1.1\r\nHost: t\r\n\r\n")
        assert connection.reply()[0] == 200
        server.run(server.server.stop(10.0))
        assert connection.closed()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_stopping_lets_a_request_in_flight_end_and_closes_its_connection(server: Running, core: MemoryCore) -> None:
    core.answer = lambda _: None
    with server.connect() as connection:
        connection.post(PREDICT, b"[1]")
        ticket = core.taken()
        stopped = server.start(server.server.stop(10.0))
        _refused_when_stopping(server)
        server.call(lambda: ticket.settle(Response(b"1", "application/json")))
        status, headers, body = connection.reply()
        assert (status, headers["connection"], body) == (200, "close", b'{"prediction": 1}')
        assert connection.closed()
        stopped.result(20)


def _refused_when_stopping(server: Running) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", server.port)).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # the port closed in the midst of it
            continue


def test_what_is_in_flight_at_the_drain_deadline_is_answered_with_503(server: Running, core: MemoryCore) -> None:
    core.answer = lambda _: None
    with server.connect() as connection:
        connection.post(PREDICT, b"[1]")
        core.taken()
        server.run(server.server.stop(0.05))
        status, headers, body = connection.reply()
        assert (status, headers["retry-after"], json.loads(body)["type"]) == (503, "1", "Draining")
        assert connection.closed()
    assert isinstance(core.results.get(timeout=20), Cancelled)


def test_a_port_is_free_again_at_once(server: Running, core: MemoryCore) -> None:
    with server.connect() as connection:
        connection.send(b"GET /live HTTP/1.1\r\nHost: t\r\n\r\n")
        assert connection.reply()[0] == 200
        server.run(server.server.stop(1.0))
    [again] = bind("127.0.0.1", server.port, "--port")
    again.close()


def test_stopping_what_never_started_or_has_stopped_is_nothing(server: Running, core: MemoryCore) -> None:
    server.run(server.server.stop(1.0))
    server.run(server.server.stop(1.0))
    asyncio.run(HttpServer(_app(core), "127.0.0.1", 0).stop(1.0))
