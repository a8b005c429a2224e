from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import psutil
import pytest

from cluster.harness import ECHO, hook_file, run, serving, until
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import AlreadyServed, LoadFailed, ModelNotFound, NoReplica, OutOfMemory, RequestError
from forecastle.messages import Response


def test_a_model_can_be_added_and_removed_and_its_processes_end_with_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, ECHO)) as served:
            other = ModelSpec("other", None, replicas=2)
            await served.controller.add(other, hook_file(tmp_path, ECHO, "other"))
            assert await served.body(b"x", model="other") == b"x"
            pids = served.pids("other")
            assert len(pids) == 2
            await served.controller.remove("other", drain=5)
            assert isinstance(await served.ask(b"x", model="other"), ModelNotFound)
            assert not any(psutil.pid_exists(pid) for pid in pids)
            assert await served.body(b"still") == b"still"

    run(test)


def test_a_name_that_is_served_is_refused_and_serves_on(tmp_path: Path) -> None:
    async def test() -> None:
        artifact = hook_file(tmp_path, ECHO)
        async with serving(artifact) as served:
            with pytest.raises(AlreadyServed, match="'m'"):
                await served.controller.add(ModelSpec("m", None), artifact)
            assert await served.body(b"x") == b"x"

    run(test)


def test_of_a_model_that_cannot_be_added_nothing_is_left(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, ECHO)) as served:
            broken = hook_file(tmp_path, "raise RuntimeError('no weights')", "broken")
            with pytest.raises(LoadFailed, match="no weights") as caught:
                await served.controller.add(ModelSpec("broken", None, replicas=2), broken)
            assert not caught.value.memory
            assert set(served.router.models) == {"m"}
            await served.controller.add(ModelSpec("broken", None), hook_file(tmp_path, ECHO, "mended"))
            assert await served.body(b"x", model="broken") == b"x"

    run(test)


@pytest.mark.parametrize(
    "text", ["raise MemoryError", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"], ids=["raised", "killed"]
)
def test_a_load_that_runs_out_of_memory_says_so(tmp_path: Path, text: str) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, ECHO)) as served:
            with pytest.raises(LoadFailed) as caught:
                await served.controller.add(ModelSpec("big", None), hook_file(tmp_path, text, "big"))
            assert caught.value.memory

    run(test)


def test_a_prediction_that_runs_out_of_memory_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, "def predict_fn(data):\n    raise MemoryError\n")) as served:
            assert isinstance(await served.ask(b"x"), OutOfMemory)

    run(test)


def test_removing_lets_what_is_in_flight_end_and_then_no_longer_waits(tmp_path: Path) -> None:
    text = "import time\ndef predict_fn(data):\n    time.sleep(float(data))\n    return data\n"

    async def test() -> None:
        async with serving(hook_file(tmp_path, text)) as served:
            quick = asyncio.create_task(served.ask(b"0.3"))
            await until(lambda: served.router.models["m"].batcher.running == 1)
            await served.controller.remove("m", drain=20)
            assert isinstance(await quick, Response)
            await served.controller.add(ModelSpec("m", None), hook_file(tmp_path, text))
            slow = asyncio.create_task(served.ask(b"60"))
            await until(lambda: served.router.models["m"].batcher.running == 1)
            await served.controller.remove("m", drain=0.1)
            assert isinstance(await slow, ModelNotFound)

    run(test)


def test_a_second_version_answers_by_its_number_at_first_and_by_the_name_once_it_is_used(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, ECHO)) as served:
            second = ModelSpec("m", None, version="2")
            await served.controller.add(second, hook_file(tmp_path, "def predict_fn(d, m): return b'two'\n", "second"))
            assert await served.body(b"x") == b"x"
            assert await served.body(b"x", version="2") == b"two"
            served.router.use("m", "2")
            assert await served.body(b"x") == b"two"
            assert await served.body(b"x", version="1") == b"x"
            assert isinstance(unknown := await served.ask(b"x", version="3"), ModelNotFound)
            assert "'3'" in unknown.message
            await served.controller.remove("m", "1", drain=5)
            assert await served.body(b"x") == b"two"

    run(test)


def test_replicas_are_added_and_taken_away_while_requests_run_and_none_is_lost(tmp_path: Path) -> None:
    slow = "import time\ndef predict_fn(data, model):\n    time.sleep(0.02)\n    return data\n"

    async def test() -> None:
        async with serving(hook_file(tmp_path, slow)) as served:
            over = asyncio.Event()

            async def ask(number: int) -> int:
                turn = 0
                while not over.is_set():
                    turn += 1
                    assert await served.body(b"%d.%d" % (number, turn)) == b"%d.%d" % (number, turn)
                return turn

            asking = [asyncio.create_task(ask(number)) for number in range(8)]
            for count in (4, 1, 2, 1):
                await served.controller.scale("m", "1", count, drain=5)
                assert len(served.pids()) == len(served.router.models["m"].batcher.slots) == count
            over.set()
            assert min(await asyncio.gather(*asking)) > 3

    run(test)


def test_without_replicas_requests_are_refused_and_with_one_they_are_answered_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(hook_file(tmp_path, ECHO)) as served:
            await served.controller.scale("m", "1", 0, drain=5)
            assert served.pids() == []
            assert isinstance(await served.ask(b"x"), NoReplica)
            await served.controller.scale("m", "1", 1, drain=5)
            assert await served.body(b"x") == b"x"

    run(test)


def test_replicas_that_cannot_be_added_leave_those_there_are(tmp_path: Path) -> None:
    once = (
        "import os, pathlib\n"
        "flag = pathlib.Path(__file__).with_suffix('.loaded')\n"
        "if flag.exists():\n    raise RuntimeError('only once')\n"
        "flag.touch()\n" + ECHO
    )

    async def test() -> None:
        async with serving(hook_file(tmp_path, once)) as served:
            with pytest.raises(LoadFailed, match="only once"):
                await served.controller.scale("m", "1", 3, drain=5)
            assert await served.body(b"x") == b"x"
            assert [replica.state for replica in served.router.models["m"].replicas] == ["ready"]

    run(test)


@pytest.mark.parametrize("drain", [0.0, 30.0])
@pytest.mark.parametrize("change", ["remove", "scale"])
def test_what_is_being_ended_when_the_call_is_cancelled_ends_with_the_controller(
    tmp_path: Path, change: str, drain: float
) -> None:
    slow = "import time\ndef predict_fn(data, model):\n    time.sleep(5)\n    return data\n"

    async def test() -> None:
        async with serving(hook_file(tmp_path, slow)) as served:
            asked = asyncio.create_task(served.ask(b"x"))
            await until(lambda: served.router.models["m"].running == 1)
            controller = served.controller
            call = controller.scale("m", "1", 0, drain) if change == "scale" else controller.remove("m", drain=drain)
            task = asyncio.create_task(call)
            for _ in range(5):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert isinstance(await asked, RequestError)  # serving() asserts that no process is left

    run(test)
