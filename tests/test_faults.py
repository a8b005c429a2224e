"""The whole server under load while things break: what a client sees, and what is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from cli.process import Server, all_gone, eventually, serving

HOOKS = """
import os, pathlib, time

def input_fn(input_data, content_type):
    return input_data.decode()

def predict_fn(data, model):
    if data.startswith("sleep"):
        time.sleep(float(data.split()[1]))
    if data.startswith("note"):
        pathlib.Path(os.environ["NOTES"]).open("a").write(data + "\\n")
    if data == "nan":
        return {"values": [float("nan"), float("inf"), -float("inf"), 1.5], "é": "ü"}
    return {"echo": data}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text(HOOKS)
    return tmp_path


class Load:
    """Clients that ask as fast as they are answered, each question its own, and check every answer."""

    def __init__(self, server: Server, clients: int) -> None:
        self.url = f"{server.url}/echo/predict"
        self.statuses: Counter[int] = Counter()
        self.slowest = 0.0
        self.wrong: list[str] = []
        self.broken: list[tuple[float, str]] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(clients)]

    def __enter__(self) -> Load:  # noqa: PYI034 -- typing has no Self before 3.11
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        turn = 0
        with httpx.Client(timeout=30) as client:
            while not self._stop.is_set():
                turn += 1
                question = f"{number}.{turn}"
                began = time.monotonic()
                try:
                    reply = client.post(self.url, content=question, headers={"content-type": "text/plain"})
                except httpx.TransportError as error:
                    with self._lock:
                        self.broken.append((began, repr(error)))
                    self._stop.wait(0.01)
                    continue
                with self._lock:
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.statuses[reply.status_code] += 1
                    if reply.status_code == 200 and reply.json() != {"prediction": {"echo": question}}:
                        self.wrong.append(reply.text)


def test_a_killed_replica_costs_no_request_more_than_two_seconds_or_a_503(folder: Path) -> None:
    with serving("echo=echo.py", "--replicas", "2", folder=folder) as server, Load(server, 8) as load:
        for _ in range(2):
            seen = load.statuses[200]
            eventually(lambda seen=seen: load.statuses[200] > seen + 200, "answers")  # type: ignore[misc]
            killed = server.replicas()
            for replica in killed:
                os.kill(replica.pid, signal.SIGKILL)
            eventually(lambda killed=killed: all_gone(killed), "the deaths")  # type: ignore[misc]
            eventually(lambda: httpx.get(f"{server.url}/ping").status_code == 200, "the replicas to be back")
        load.stop()
        assert load.broken == []
        assert load.wrong == []
        assert set(load.statuses) <= {200, 503}
        assert load.slowest < 2.0
        assert "SIGKILL" in server.log


def test_sigterm_under_load_loses_nothing_that_was_asked_before(folder: Path) -> None:
    with serving("echo=echo.py", folder=folder) as server, Load(server, 8) as load:
        eventually(lambda: load.statuses[200] > 200, "answers")
        replicas = server.replicas()
        asked_until = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.end() == 0
        load.stop()
        lost = [error for began, error in load.broken if began < asked_until - 0.05]
        assert lost == []
        assert load.wrong == []
        assert set(load.statuses) <= {200, 503}
        assert all_gone(replicas)


def test_what_a_client_no_longer_waits_for_never_reaches_the_model(folder: Path) -> None:
    notes = folder / "notes"
    with serving("echo=echo.py", folder=folder, environment={"NOTES": str(notes)}) as server:
        waiting = threading.Thread(target=server.post, args=("/echo/predict", b"sleep 1.5", "text/plain"))
        waiting.start()
        metrics = f"{server.management}/metrics"
        eventually(lambda: running(httpx.get(metrics).text) == 1, "the first request to run")
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"POST /echo/predict HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nnote gone")
            eventually(lambda: running(httpx.get(metrics).text) == 2, "the second request to wait")
        eventually(lambda: "echo" in cancelled(httpx.get(metrics).text), "the disconnect to be counted")
        waiting.join()
        assert server.post("/echo/predict", b"note stayed", "text/plain").status_code == 200
        assert notes.read_text() == "note stayed\n"


def running(metrics: str) -> int:
    for line in metrics.splitlines():
        if line.startswith("forecastle_http_in_flight"):
            return int(float(line.rpartition(" ")[2]))
    return 0


def cancelled(metrics: str) -> str:
    lines = [line for line in metrics.splitlines() if "cancelled" in line and not line.startswith("#")]
    return "".join(line for line in lines if float(line.rpartition(" ")[2]) > 0)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "predicting"])
def test_no_replica_outlives_a_server_that_was_killed(folder: Path, busy: bool) -> None:
    with serving("echo=echo.py", "--replicas", "2", folder=folder) as server:
        replicas = server.replicas()
        assert len(replicas) == 2
        client = threading.Thread(
            target=ignoring_breaks, args=(server.post, "/echo/predict", b"sleep 60", "text/plain")
        )
        if busy:
            client.start()
            metrics = f"{server.management}/metrics"
            eventually(lambda: running(httpx.get(metrics).text) == 1, "the request to run")
        server.signal(signal.SIGKILL)
        server.end()
        eventually(lambda: all_gone(replicas), "the replicas to end")
        if busy:
            client.join()


def ignoring_breaks(call: Callable[..., object], *args: object) -> None:
    with contextlib.suppress(httpx.TransportError):
        call(*args)


def test_numbers_that_json_cannot_hold_are_null_and_text_is_utf8(folder: Path) -> None:
    with serving("echo=echo.py", folder=folder) as server:
        reply = server.post("/invocations", b"nan", "text/plain")
        assert reply.json() == {"values": [None, None, None, 1.5], "é": "ü"}
        assert "é".encode() in reply.content


def test_ping_is_quick_while_a_prediction_runs(folder: Path) -> None:
    with serving("echo=echo.py", folder=folder) as server:
        waiting = threading.Thread(target=server.post, args=("/echo/predict", b"sleep 1", "text/plain"))
        waiting.start()
        eventually(lambda: running(httpx.get(f"{server.management}/metrics").text) == 1, "the request to run")
        with httpx.Client() as client:
            client.get(f"{server.url}/ping")
            began = time.monotonic()
            assert client.get(f"{server.url}/ping").status_code == 200
            took = time.monotonic() - began
        assert waiting.is_alive(), "the prediction must have been running"
        waiting.join()
        assert took < 0.5  # far below the prediction's second, on a machine that other tests share


def test_idle_replicas_use_no_processor(folder: Path) -> None:
    with serving("echo=echo.py", folder=folder) as server:
        (replica,) = server.replicas()
        before = replica.cpu_times()
        psutil.Process(server.process.pid).cpu_percent(interval=1.0)
        after = replica.cpu_times()
        assert after.user + after.system - before.user - before.system < 0.1
