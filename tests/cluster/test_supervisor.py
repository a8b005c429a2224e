"""Replicas that live, die, hang and lie: real processes, real signals, real sockets."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from cluster.harness import ECHO, Served, hook_file, run, serving, until
from forecastle.errors import DeadlineExceeded, LoadFailed, NoReplica, PredictionFailed, ReplicaDied, RequestError
from forecastle.messages import Response
from forecastle.serving import batcher
from forecastle.serving.ticket import Result


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a restart however long it takes on a machine that other tests use too."""
    monkeypatch.setattr(batcher, "GRACE", 60.0)


def test_a_replica_answers_and_says_what_it_is(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, ECHO), replicas=2) as served:
            assert await served.body(b"hello") == b"hello"
            info = served.router.models["m"].describe()
            assert (info.runtime, info.batch_strategy) == ("script", "MultiRecord")
            assert [replica.state for replica in info.replicas] == ["ready", "ready"]
            assert len(set(served.pids())) == 2

    run(test)


def test_every_request_is_answered_or_refused_within_two_seconds_when_replicas_are_killed_under_load(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, ECHO), replicas=2) as served:
            kinds: Counter[str] = Counter()
            slowest = 0.0
            stop = asyncio.Event()

            async def client(name: int) -> None:
                nonlocal slowest
                turn = 0
                while not stop.is_set():
                    turn += 1
                    data = f"{name}.{turn}".encode()
                    began = time.monotonic()
                    result = await served.ask(data)
                    slowest = max(slowest, time.monotonic() - began)
                    assert isinstance(result, Response | NoReplica | ReplicaDied), result
                    if isinstance(result, Response):
                        assert result.body == data, "somebody else's answer"
                    kinds[type(result).__name__] += 1
                    if isinstance(result, NoReplica):
                        await asyncio.sleep(0.05)

            clients = [asyncio.create_task(client(i)) for i in range(16)]
            for _ in range(3):
                answered = kinds["Response"]
                await until(lambda floor=answered: kinds["Response"] > floor + 200)  # type: ignore[misc]
                for pid in served.pids():
                    os.kill(pid, signal.SIGKILL)
                await until(lambda: all(r.state == "ready" for r in served.router.models["m"].replicas))
            stop.set()
            await asyncio.gather(*clients)
            assert slowest < 2.0
            stats = served.router.models["m"].stats
            assert stats.requests == stats.answered + sum(stats.failed.values())

    run(test)


@pytest.mark.usefixtures("patient")
def test_a_request_in_a_killed_replica_is_answered_by_the_next_one(tmp_path: Path) -> None:
    marker = tmp_path / "first"
    text = f"""
import os, signal, pathlib
def predict_fn(data, model):
    marker = pathlib.Path({str(marker)!r})
    if not marker.exists():
        marker.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return data
"""

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)) as served:
            assert await served.body(b"x") == b"x"
            (status,) = served.router.models["m"].replicas
            assert status.restarts == 1

    run(test)


@pytest.mark.usefixtures("patient")
def test_a_request_that_kills_every_replica_fails_with_the_cause(tmp_path: Path) -> None:
    text = "import os\ndef predict_fn(data, model):\n    os._exit(7) if data == b'poison' else None\n    return data\n"

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)) as served:
            error = await served.ask(b"poison")
            assert isinstance(error, ReplicaDied)
            assert "exited with code 7" in error.message
            await until(served.router.healthy)
            assert await served.body(b"fine") == b"fine"

    run(test)


@pytest.mark.usefixtures("patient")
def test_a_prediction_that_hangs_is_ended_at_its_deadline_and_its_replica_replaced(tmp_path: Path) -> None:
    text = "import time\ndef predict_fn(data):\n    time.sleep(1000) if data == b'hang' else None\n    return data\n"

    async def test() -> None:
        async with serving(hook_file(tmp_path, text), timeout=1.0) as served:
            (pid,) = served.pids()
            began = time.monotonic()
            assert isinstance(await served.ask(b"hang", timeout=1.0), DeadlineExceeded)
            assert time.monotonic() - began < 1.5
            await until(lambda: served.router.healthy() and served.pids() != [pid])
            assert await served.body(b"fine") == b"fine"

    run(test)


GARBAGE = """
import os, stat
def predict_fn(data, model):
    if data == b'lie':
        for name in os.listdir('/proc/self/fd'):
            try:
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    os.write(int(name), b'HTTP/1.1 200 OK\\r\\n\\r\\nI am a web server')
            except OSError:
                pass
    return data
"""


@pytest.mark.usefixtures("patient")
def test_a_replica_that_writes_garbage_on_its_socket_is_replaced(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, GARBAGE)) as served:
            error = await served.ask(b"lie")
            assert isinstance(error, ReplicaDied)
            assert "broke the protocol" in error.message
            await until(served.router.healthy)
            assert await served.body(b"truth") == b"truth"

    run(test)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise RuntimeError('weights are missing')", "RuntimeError: weights are missing"),
        ("def model_fn(model_dir):\n    import sys; sys.exit(5)", "SystemExit: 5"),
        ("def model_fn(model_dir):\n    import os; os._exit(9)", "exited with code 9"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def model_fn(:", "SyntaxError"),
        ("x = 1", "defines no hook"),
    ],
)
def test_a_model_that_cannot_be_loaded_ends_the_start_with_the_reason(tmp_path: Path, text: str, expected: str) -> None:
    async def test() -> None:
        with pytest.raises(LoadFailed) as caught:
            async with serving(hook_file(tmp_path, text)):
                raise AssertionError("it was loaded")
        assert "'m'" in caught.value.message
        assert expected in caught.value.message

    run(test)


def test_what_a_failing_model_printed_is_in_the_message(tmp_path: Path) -> None:
    async def test() -> None:
        text = "print('looking for weights'); raise RuntimeError('none')"
        with pytest.raises(LoadFailed, match="looking for weights"):
            async with serving(hook_file(tmp_path, text)):
                raise AssertionError("it was loaded")

    run(test)


def test_a_model_that_never_becomes_ready_ends_the_start_at_its_deadline(tmp_path: Path) -> None:
    async def test() -> None:
        text = "import time\ndef model_fn(model_dir):\n    time.sleep(1000)\n"
        with pytest.raises(LoadFailed, match="--start-timeout"):
            async with serving(hook_file(tmp_path, text), start_timeout=1.0):
                raise AssertionError("it was loaded")

    run(test)


def test_a_hook_that_fails_fails_its_request_alone_and_tells_class_and_text_but_no_traceback(tmp_path: Path) -> None:
    text = (
        "def predict_fn(data, model):\n    if data == b'bad':\n        raise ArithmeticError('no')\n    return data\n"
    )

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)) as served:
            results: list[Result] = await asyncio.gather(*(served.ask(d) for d in (b"a", b"bad", b"c")))
            good, bad, also = results
            assert isinstance(good, Response)
            assert isinstance(also, Response)
            assert isinstance(bad, PredictionFailed)
            assert bad.message == "predict_fn raised ArithmeticError: no"

    run(test)


def test_what_a_replica_has_started_ends_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    text = f"""
import pathlib, subprocess
def model_fn(model_dir):
    child = subprocess.Popen(["sleep", "1000"])
    pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))
    return lambda data: data
"""

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)):
            grandchild = int(pid_file.read_text())
            assert psutil.pid_exists(grandchild)
        await until(lambda: not psutil.pid_exists(grandchild) or psutil.Process(grandchild).status() == "zombie")

    run(test)


def test_stopping_while_a_prediction_runs_and_others_wait_ends_them_all(tmp_path: Path) -> None:
    text = "import time\ndef predict_fn(data, model):\n    time.sleep(1000)\n"

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)) as served:
            asked = [asyncio.create_task(served.ask(b"x")) for _ in range(3)]
            await until(lambda: served.router.models["m"].batcher.running > 0)
            await served.controller.stop()
            assert all(isinstance(result, RequestError) for result in await asyncio.gather(*asked))

    run(test)


def test_a_ping_fn_runs_in_the_replica_and_its_no_is_heard(tmp_path: Path) -> None:
    well = tmp_path / "well"
    text = f"import pathlib\ndef ping_fn(model):\n    return pathlib.Path({str(well)!r}).exists()\n"

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)) as served:
            assert "ping_fn" in (await served.router.check())[0]
            well.touch()
            assert await served.router.check() == []

    run(test)


def test_a_broken_replica_keeps_being_restarted_with_growing_pauses(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    text = f"import pathlib\nassert not pathlib.Path({str(broken)!r}).exists()\n{ECHO}"

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)) as served:
            broken.touch()
            (pid,) = served.pids()
            os.kill(pid, signal.SIGKILL)
            (status,) = served.router.models["m"].replicas
            await until(lambda: status.restarts >= 2)
            assert isinstance(await served.ask(b"x"), NoReplica)
            broken.unlink()
            await until(lambda: status.state == "ready")
            assert await served.body(b"x") == b"x"

    run(test)


def test_requests_are_shared_between_replicas(tmp_path: Path) -> None:
    text = "import os, time\ndef predict_fn(data, model):\n    time.sleep(0.05)\n    return str(os.getpid()).encode()\n"

    async def answers(served: Served) -> set[bytes]:
        return set(await asyncio.gather(*(served.body(b"x") for _ in range(4))))

    async def test() -> None:
        async with serving(hook_file(tmp_path, text), replicas=2) as served:
            assert len(await answers(served)) == 2

    run(test)


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 7\n", "no program", None], ids=["ends", "no program", "missing"])
def test_an_interpreter_that_does_not_run_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: Any, program: str | None
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    python = tmp_path / "python"
    if program is not None:
        python.write_text(program)
        python.chmod(0o755)

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(LoadFailed, match=r"it exited with code (7|127)|could not be started"):
                async with serving(hook_file(tmp_path, ECHO), python=str(python)):
                    pass

    runner(main())
    assert list((tmp_path / "t").iterdir()) == []
