from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from bench.overload import load, table
from bench.overload.load import Goodput, Outcome
from bench.overload.table import Curve


def test_arrivals_are_as_many_as_was_said_and_the_same_each_time() -> None:
    times = list(load.arrivals(500.0, 10.0, seed=1))
    assert times == sorted(times) == list(load.arrivals(500.0, 10.0, seed=1))
    assert 4700 < len(times) < 5300
    assert max(times) < 10.0


def test_only_predictions_in_time_are_goodput() -> None:
    outcomes = [
        Outcome(0.05, "good"),
        Outcome(0.3, "good"),
        Outcome(0.01, "default"),
        Outcome(0.02, "refused"),
        Outcome(0.03, "failed"),
        None,
    ]
    found = load.judge([1.0] * 6, outcomes, begin=0.5, end=2.5, slo=0.2)
    assert (found.offered, found.good, found.in_time) == (3.0, 0.5, 1 / 6)
    assert (found.defaults, found.refused, found.failed) == (0.5, 0.5, 1.0)
    assert found.p50_other == pytest.approx(20.0)
    assert found.p99 == pytest.approx(300.0)


def test_a_queue_that_fills_or_is_worked_off_is_no_goodput() -> None:
    answered = Outcome(0.15, "good")
    found = load.judge([0.8, 0.9, 1.5, 1.9], [answered] * 4, begin=1.0, end=2.0, slo=0.2)
    assert (found.offered, found.good, found.in_time) == (2.0, 2.0, 1.0)  # 0.9 and 1.5 end there, 1.5 and 1.9 begin


def test_what_was_never_answered_has_no_percentile() -> None:
    found = load.judge([0.0, 0.1], [None, None], begin=0.0, end=1.0, slo=0.2)
    assert (found.p99, found.p50_other, found.failed) == (None, None, 2.0)


POINTS = [
    Goodput(offered=100, good=100, in_time=1.0),
    Goodput(offered=200, good=199, in_time=0.995),
    Goodput(offered=400, good=300, in_time=0.75),
    Goodput(offered=300, good=290, in_time=0.97),
]


def test_what_is_sustainable_is_what_99_of_100_are_answered_at() -> None:
    assert load.sustainable(POINTS) == POINTS[1]
    assert load.between(POINTS) == (200, 300)
    assert load.sustainable(POINTS[2:]) is None
    assert load.between(POINTS[2:]) is None
    assert load.between(POINTS[:2]) is None


def test_the_table_has_ratios_to_what_each_server_sustains() -> None:
    text = table.ratios([Curve("Ours", 200.0, 0.97, POINTS), Curve("Theirs", 0.0, 0.0, POINTS)])
    assert "| Ours | 2.00 | 1.50 | 400 | 300 |" in text
    assert "| Theirs |" not in text
    assert "Ours sustains 200/s; asked for twice that, it answers 97% of it in time" in text
    assert "Goodput" not in table.line("Ours", POINTS[0])
    assert "99.5%" in table.line("Ours", POINTS[1])


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
            status = {2: b"503 No\r\nRetry-After: 1", 4: b"503 No"}.get(number, b"200 OK")
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
    outcomes = load.run(slow_server, lambda i: b"POST\n%d" % i, lambda body: body == b"ok", [i / 100 for i in range(6)])
    assert [each and each.kind for each in outcomes] == ["good", "good", "refused", None, "failed", "good"]


def test_a_server_is_settled_once_it_answers_all_in_time(slow_server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "SETTLE_SECONDS", 0.3)
    assert load.settled(slow_server, lambda _: b"POST\n1", lambda _: True, slo=5.0)
    assert not load.settled(slow_server, lambda _: b"POST\n2", lambda _: True, slo=5.0)
