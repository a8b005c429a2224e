from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from bench.overload import load
from bench.overload.load import Goodput, Outcome


def test_arrivals_are_as_many_as_was_said_and_the_same_each_time() -> None:
    times = list(load.arrivals(500.0, 10.0, seed=1))
    assert times == sorted(times) == list(load.arrivals(500.0, 10.0, seed=1))
    assert 4700 < len(times) < 5300
    assert max(times) < 10.0


def test_only_predictions_in_time_are_goodput() -> None:
    outcomes = [Outcome(0.05, True), Outcome(0.3, True), Outcome(0.01, False), Outcome(0.02, False), None]
    found = load.judge(outcomes, seconds=2.0, slo=0.2)
    assert (found.offered, found.good, found.in_time) == (2.5, 0.5, 0.2)
    assert found.p50_other == pytest.approx(20.0)


def test_what_is_sustainable_is_what_99_of_100_are_answered_at() -> None:
    points = [Goodput(100, 100, 1.0, 1, 1), Goodput(200, 199, 0.995, 1, 1), Goodput(400, 300, 0.75, 1, 1)]
    assert load.sustainable(points) == 199
    assert load.sustainable(points[2:]) == 0.0


@pytest.fixture
def slow_server() -> Iterator[int]:
    """Answers 200 or 503 by the number in the body; that of 3 it never answers."""
    loop = asyncio.new_event_loop()

    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        while head := await reader.read(1000):
            number = int(head.rpartition(b"\n")[2])
            if number == 3:
                continue
            status = b"503 No" if number == 2 else b"200 OK"
            if number == 1:
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 2\r\n\r\nok")
        writer.close()
        await writer.wait_closed()

    async def stop() -> None:
        server.close()
        await asyncio.gather(*(task for task in serving if task is not None), return_exceptions=True)

    started = asyncio.run_coroutine_threadsafe
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = started(asyncio.start_server(serve, "127.0.0.1", 0), loop).result()
    yield server.sockets[0].getsockname()[1]
    started(stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_every_request_of_a_load_has_its_outcome(slow_server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "PATIENCE", 0.3)
    outcomes = load.run(
        slow_server, lambda i: b"POST\n%d" % i, lambda body: body == b"ok", [0.0, 0.01, 0.02, 0.03, 0.04]
    )
    assert [None if each is None else each.good for each in outcomes] == [True, True, False, None, True]
