"""The path of one prediction request: what the core gets, what the client gets, and who goes away when."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from typing import Any

import httpx
import pytest

from forecastle.errors import (
    BadInput,
    BadOutput,
    Cancelled,
    DeadlineExceeded,
    Draining,
    NoReplica,
    NotAcceptable,
    Overloaded,
    PredictionFailed,
    ReplicaDied,
    RequestError,
    UnsupportedMediaType,
)
from forecastle.http.app import InferenceApp
from forecastle.http.lateness import Lateness
from forecastle.http.stats import HttpStats
from forecastle.messages import Response
from http_fakes import MemoryCore, Running, running

PREDICT = "/resnet-18/predict"


class _Other:
    def __init__(self) -> None:
        self.found = asyncio.Event()

    def late(self) -> None:
        self.found.set()


async def _two_ticks() -> None:
    """Wait until a request that came before has been found late: until one that came later has been, twice."""
    for _ in range(2):
        other = _Other()
        Lateness().add(other)
        await other.found.wait()


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ([], "*/*"),
        ([("Accept", "")], "*/*"),
        ([("Accept", "text/csv;q=0.5, application/json")], "text/csv;q=0.5, application/json"),
        ([("Accept", "text/csv"), ("Accept", "application/json")], "text/csv, application/json"),
    ],
)
def test_the_accept_header_arrives_whole_and_its_absence_means_anything(
    server: Running, core: MemoryCore, sent: list[tuple[str, str]], seen: str
) -> None:
    with server.connect() as connection:
        connection.post(PREDICT, b"[1]", *(f"{name}: {value}" for name, value in sent))
        assert connection.reply()[0] == 200
    assert core.taken().request.accept == seen


@pytest.mark.parametrize("content_type", ["text/csv; charset=utf-8", "Application/X-NPY", ""])
def test_the_content_type_arrives_as_it_was_sent(server: Running, core: MemoryCore, content_type: str) -> None:
    with server.connect() as connection:
        connection.post(PREDICT, b"1,2", *([f"Content-Type: {content_type}"] if content_type else []))
        assert connection.reply()[0] == 200
    [part] = core.taken().request.parts
    assert (part.name, part.content_type, part.data) == ("", content_type, b"1,2")


def test_the_deadline_is_the_servers_or_the_clients_whichever_is_earlier(
    client: httpx.Client, core: MemoryCore
) -> None:
    def given(**headers: str) -> float:
        before = time.monotonic()
        assert client.post(PREDICT, json=[1], headers=headers).status_code == 200
        return core.taken().request.deadline - before

    assert 30.0 <= given() < 40.0
    assert 2.5 <= given(**{"X-Forecastle-Timeout": "2.5"}) < 12.5
    assert 30.0 <= given(**{"X-Forecastle-Timeout": "999999999"}) < 40.0


@pytest.mark.parametrize("value", ["", "0", "0.0", "-1", "nan", "inf", "1e999", "1_0", "soon", "1.", "9" * 400])
def test_a_timeout_that_is_no_positive_decimal_is_refused(client: httpx.Client, value: str) -> None:
    reply = client.post(PREDICT, json=[1], headers={"X-Forecastle-Timeout": value})
    assert reply.status_code == 400
    assert "X-Forecastle-Timeout" in reply.json()["message"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadInput, 400),
        (NotAcceptable, 406),
        (UnsupportedMediaType, 415),
        (PredictionFailed, 500),
        (BadOutput, 500),
        (Overloaded, 503),
        (NoReplica, 503),
        (ReplicaDied, 503),
        (Draining, 503),
        (DeadlineExceeded, 504),
    ],
)
def test_an_error_of_the_core_has_its_status_type_and_sentence(
    client: httpx.Client, core: MemoryCore, error: type[RequestError], status: int
) -> None:
    core.answer = lambda _: error("the input 'größe' is wrong")
    reply = client.post(PREDICT, json=[1], headers={"X-Request-Id": "r1"})
    assert reply.status_code == status
    assert reply.json() == {
        "code": status,
        "type": error.__name__,
        "message": "the input 'größe' is wrong",
        "request_id": "r1",
    }
    assert "retry-after" not in reply.headers


@pytest.mark.parametrize(("seconds", "header"), [(0.0, "1"), (0.2, "1"), (1.0, "1"), (1.01, "2"), (30.0, "30")])
def test_retry_after_is_whole_seconds_rounded_up(
    client: httpx.Client, core: MemoryCore, seconds: float, header: str
) -> None:
    core.answer = lambda _: Overloaded("full", retry_after=seconds)
    assert client.post(PREDICT, json=[1]).headers["retry-after"] == header


@pytest.mark.parametrize("content_type", ["text/plain\r\nX-Evil: 1", "", "text/plän", "a" * 300])
def test_a_content_type_that_no_header_can_carry_is_the_hooks_fault(
    client: httpx.Client, core: MemoryCore, content_type: str
) -> None:
    core.answer = lambda _: Response(b"x", content_type)
    reply = client.post(PREDICT, json=[1])
    assert (reply.status_code, reply.json()["type"]) == (500, "BadOutput")
    assert "x-evil" not in reply.headers


def test_a_defect_is_logged_under_the_request_id_and_told_to_nobody(
    client: httpx.Client, core: MemoryCore, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> Any:
        raise ZeroDivisionError("secret")

    core.answer = fail
    with caplog.at_level(logging.ERROR):
        reply = client.post(PREDICT, json=[1], headers={"X-Request-Id": "r7"})
    assert (reply.status_code, reply.json()["type"]) == (500, "InternalError")
    assert "secret" not in reply.text
    assert "r7" in caplog.text
    assert "ZeroDivisionError: secret" in caplog.text


def test_what_was_read_late_is_answered_all_the_same(server: Running) -> None:
    with server.connect() as connection:
        connection.send(b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            connection.send(b"3\r\n[1]\r\n")
            # An answer to another request in between: this one's body comes in several pieces, late.
            with httpx.Client(base_url=server.url) as other:
                assert other.get("/live").status_code == 200
        connection.send(b"0\r\n\r\n")
        assert connection.reply()[2] == b'{"prediction": [1][1][1]}'


def test_pipelined_requests_are_answered_in_order(server: Running) -> None:
    with server.connect() as connection:
        connection.send(
            b"".join(
                b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\n[%d]" % i for i in range(9)
            )
        )
        assert [connection.reply()[2] for _ in range(9)] == [b'{"prediction": [%d]}' % i for i in range(9)]


def test_a_connection_is_kept_after_an_error_whose_body_was_not_read(server: Running) -> None:
    with server.connect() as connection:
        connection.post("/vgg/predict", b"x" * 50_000)
        assert connection.reply()[0] == 404
        connection.post(PREDICT, b"[1]")
        assert connection.reply()[0] == 200


def test_a_client_that_expects_100_gets_it_before_its_body_is_awaited(server: Running) -> None:
    with server.connect() as connection:
        connection.send(
            b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        )
        assert connection.reply()[0] == 100
        connection.send(b"[1]")
        assert connection.reply()[0] == 200


def test_a_refused_client_that_expects_100_gets_the_refusal_and_no_confusion(server: Running) -> None:
    with server.connect() as connection:
        connection.send(b"POST /vgg/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        status, headers, _ = connection.reply()
        assert (status, headers["connection"]) == (404, "close")


def test_an_upgrade_to_http2_is_declined_by_answering(server: Running) -> None:
    with server.connect() as connection:
        connection.post(PREDICT, b"[1]", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMA")
        assert connection.reply()[0] == 200


def test_http_1_0_closes_after_the_answer(server: Running) -> None:
    with server.connect() as connection:
        connection.send(b"POST /resnet-18/predict HTTP/1.0\r\nContent-Length: 3\r\n\r\n[1]")
        assert connection.reply()[0] == 200
        assert connection.closed()


def test_a_client_that_goes_away_while_it_waits_cancels_its_request(
    server: Running, core: MemoryCore, stats: HttpStats
) -> None:
    core.answer = lambda _: None
    with server.connect() as connection:
        connection.post(PREDICT, b"[1]")
        core.taken()
    assert isinstance(core.results.get(timeout=20), Cancelled)
    assert server.call(lambda: stats.in_flight) == 0


def test_a_client_that_goes_away_after_a_late_body_cancels_its_request(server: Running, core: MemoryCore) -> None:
    core.answer = lambda _: None
    with server.connect() as connection:
        connection.send(b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\n[")
        server.run(_two_ticks())
        connection.send(b"1]")
        core.taken()
    assert isinstance(core.results.get(timeout=20), Cancelled)


def test_a_client_that_goes_away_in_its_body_never_reaches_the_core(
    server: Running, core: MemoryCore, stats: HttpStats
) -> None:
    with server.connect() as connection:
        connection.send(b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 30\r\n\r\n[1, 2")
    with httpx.Client(base_url=server.url) as other:
        while stats.errors.get(("/{name}/predict", "Cancelled")) is None:
            assert other.get("/live").status_code == 200
    assert core.tickets.empty()


def test_a_late_answer_reaches_a_client_that_waits(server: Running, core: MemoryCore) -> None:
    core.answer = lambda _: None
    with server.connect() as connection:
        connection.post(PREDICT, b"[1]")
        ticket = core.taken()
        server.run(_two_ticks())
        server.call(lambda: ticket.settle(Response(b"2", "application/json")))
        assert connection.reply()[2] == b'{"prediction": 2}'
        core.answer = lambda _: Response(b"3", "application/json")
        connection.post(PREDICT, b"[1]")
        assert connection.reply()[2] == b'{"prediction": 3}'


@pytest.mark.parametrize("body", [b"", b"[1"])
def test_a_body_that_does_not_come_ends_with_the_deadline(core: MemoryCore, stats: HttpStats, body: bytes) -> None:
    with running(InferenceApp(core, stats, timeout=0.2, max_body=1000)) as server, server.connect() as connection:
        connection.send(b"POST /resnet-18/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\n" + body)
        status, headers, _ = connection.reply()
        assert (status, headers["connection"]) == (504, "close")
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.closed()


def test_many_clients_each_get_their_own_answer(server: Running) -> None:
    wrong: list[object] = []

    def ask(who: int) -> None:
        with httpx.Client(base_url=server.url) as client:
            for i in range(30):
                reply = client.post(PREDICT, json=[who, i], headers={"X-Request-Id": f"{who}.{i}"})
                if reply.json() != {"prediction": [who, i]} or reply.headers["x-request-id"] != f"{who}.{i}":
                    wrong.append(reply)

    threads = [threading.Thread(target=ask, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(("status", "body"), [(201, b"made"), (507, b"Invalid response"), (204, b""), (304, b"")])
def test_an_answer_has_the_status_that_a_handler_chose(
    core: MemoryCore, client: httpx.Client, status: int, body: bytes
) -> None:
    core.answer = lambda _: Response(body or b"left out", "text/plain", status=status)
    reply = client.post("/invocations", content=b"1")
    assert (reply.status_code, reply.content) == (status, body)


def test_an_error_has_the_status_that_a_handler_chose(core: MemoryCore, client: httpx.Client) -> None:
    core.answer = lambda _: PredictionFailed("no", status=599)
    reply = client.post("/invocations", content=b"1")
    assert (reply.status_code, reply.json()["code"], reply.json()["type"]) == (599, 599, "PredictionFailed")
