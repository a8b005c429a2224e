"""Answers in pieces through a whole server: real processes, real sockets; gates are files, not time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from cli.process import Server, eventually, serving

HOOKS = """
import pathlib, time, os
from forecastle import current_request

HERE = pathlib.Path(__file__).parent

def wait_for(name):
    while not (HERE / name).exists():
        time.sleep(0.005)

def predict_fn(data, model):
    current_request().set_header("X-Echo", current_request().headers.get("x-given", "none"))
    if isinstance(data, dict) and data.get("plain"):
        return "plain"
    if isinstance(data, dict):
        return endless(data)
    return numbers(data)

def numbers(count):
    for number in range(count):
        if number == 2:
            wait_for("gate")
        yield {"number": number}
    if count == 5:
        raise RuntimeError("broke at five")

def endless(data):
    (HERE / "began").touch()
    try:
        while True:
            yield b"x" * data["size"]
    finally:
        (HERE / "closed").touch()
"""


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Server]:
    (folder / "m.py").write_text(HOOKS)
    with serving("m=m.py", *options, folder=folder) as server:
        yield server


def asking(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=30, headers={"content-type": "application/json"})


def raw(server: Server, body: bytes) -> socket.socket:
    """A connection over which a request was sent, and whose reply nobody has read yet."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)))
    head = b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    connection.sendall(head % len(body) + body)
    return connection


def test_the_first_piece_is_there_before_the_last_is_made(tmp_path: Path) -> None:
    with served(tmp_path) as server, asking(server) as client:
        with client.stream("POST", "/invocations", content="4", headers={"x-given": "seen"}) as reply:
            assert reply.status_code == 200
            assert reply.headers["content-type"] == "application/x-ndjson"
            assert reply.headers["x-echo"] == "seen"
            lines = reply.iter_lines()
            assert [json.loads(next(lines)) for _ in range(2)] == [{"number": 0}, {"number": 1}]
            assert not (tmp_path / "gate").exists()
            (tmp_path / "gate").touch()
            assert [json.loads(line) for line in lines] == [{"number": 2}, {"number": 3}]
        array = client.post("/invocations", content="3", headers={"accept": "application/json"})
        assert array.json() == [{"number": 0}, {"number": 1}, {"number": 2}]
        events = client.post("/m/predict", content="3", headers={"accept": "text/event-stream"})
        assert events.headers["cache-control"] == "no-cache"
        assert events.text == "".join(f'data: {{"number":{number}}}\n\n' for number in range(3))
        assert client.post("/invocations", content="0").text == ""
        assert client.post("/invocations", content='{"plain": 1}').json() == "plain"


def test_a_stream_that_fails_on_the_way_is_seen_to_have_failed(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    with served(tmp_path) as server, asking(server) as client:
        with pytest.raises(httpx.RemoteProtocolError), client.stream("POST", "/invocations", content="5") as reply:
            for _ in reply.iter_bytes():
                pass
        events = client.post("/invocations", content="5", headers={"accept": "text/event-stream"})
        *_, last = events.text.split("\n\n")[:-1]
        assert last.startswith("event: error\ndata: ")
        assert json.loads(last.partition("data: ")[2])["type"] == "PredictionFailed"
        assert "RuntimeError: broke at five" in last
        assert client.post("/invocations", content="3").status_code == 200
        metrics = httpx.get(f"{server.management}/metrics").text
        assert 'forecastle_model_broken_total{model="m",version="1"} 2.0' in metrics
        assert "without completing" not in server.log


def test_a_client_that_goes_away_ends_the_making(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        with raw(server, b'{"size": 100}') as connection:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        eventually((tmp_path / "closed").exists, "the generator's end")
        assert server.post("/invocations", b'{"plain": 1}').json() == "plain"


def test_a_client_that_does_not_read_holds_up_the_making_and_not_the_memory(tmp_path: Path) -> None:
    with served(tmp_path, "--timeout", "3s") as server:
        with raw(server, b'{"size": 100000}'):
            eventually((tmp_path / "began").exists, "the generator's begin")
            eventually((tmp_path / "closed").exists, "the generator's end, at the deadline")
            memory = [process.memory_info().rss for process in server.replicas()]
            assert max(memory) < 300e6
            assert server.post("/invocations", b'{"plain": 1}').json() == "plain"


def test_a_stream_ends_at_the_deadline_of_its_request(tmp_path: Path) -> None:
    with served(tmp_path) as server, asking(server) as client:
        events = client.post(
            "/invocations", content="4", headers={"accept": "text/event-stream", "x-forecastle-timeout": "0.5"}
        )
        assert '"type":"DeadlineExceeded"' in events.text
        assert events.text.startswith('data: {"number":0}\n\n')
        (tmp_path / "gate").touch()
        assert client.post("/invocations", content="3").status_code == 200


def test_a_replica_that_dies_in_the_midst_of_a_stream_breaks_it_and_is_replaced(tmp_path: Path) -> None:
    with served(tmp_path) as server, asking(server) as client:
        with client.stream("POST", "/invocations", content="4", headers={"accept": "text/event-stream"}) as reply:
            lines = reply.iter_lines()
            assert next(lines) == 'data: {"number":0}'
            for process in server.replicas():
                process.kill()
            assert any('"type":"ReplicaDied"' in line for line in lines)
        (tmp_path / "gate").touch()
        assert client.post("/invocations", content="3").status_code == 200


def test_a_stop_waits_for_a_stream_to_end(tmp_path: Path) -> None:
    with served(tmp_path) as server, asking(server) as client:
        with client.stream("POST", "/invocations", content="4") as reply:
            lines = reply.iter_lines()
            next(lines)
            server.process.terminate()
            eventually(lambda: "stopping" in server.log, "the signal")
            (tmp_path / "gate").touch()
            assert len(list(lines)) == 3
        assert server.end() == 0


def test_a_stop_ends_a_stream_that_does_not_end(tmp_path: Path) -> None:
    with served(tmp_path, "--drain-timeout", "0.3") as server, asking(server) as client:
        began = time.monotonic()
        with client.stream("POST", "/invocations", content="4") as reply:
            lines = reply.iter_lines()
            next(lines)
            server.process.terminate()
            with pytest.raises(httpx.RemoteProtocolError):
                list(lines)
        assert server.end() == 0
        assert time.monotonic() - began < 20
