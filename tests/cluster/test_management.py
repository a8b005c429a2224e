from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cluster.harness import ECHO, run, until
from forecastle.cluster.applications import Applications
from forecastle.cluster.controller import Controller
from forecastle.cluster.desired import Application, Desired
from forecastle.cluster.management import Management
from forecastle.cluster.registered import RegisteredModels
from forecastle.cluster.specs import ModelSpec, ServerOptions
from forecastle.cluster.store import open_store
from forecastle.errors import ApplicationNotFound, BadInput, Conflict, ModelNotFound, NotLoaded, StoreFailed
from forecastle.messages import Part, Request
from forecastle.serving.application import Answer
from forecastle.serving.clock import LoopClock
from forecastle.serving.router import Router

_ids = count()


def hooks(folder: Path, name: str, answer: str, delay: float = 0.0) -> str:
    """A hook file that answers with a text, whatever it is asked."""
    path = folder / f"{name}.py"
    path.write_text(f"import time\ndef predict_fn(data, model):\n    time.sleep({delay})\n    return {answer!r}\n")
    return str(path)


class Server:
    """All of a server but its ports."""

    def __init__(self, store: Path, cache: Path) -> None:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop)
        self.options = ServerOptions(cache_dir=cache, drain_timeout=5.0)
        self.router = Router(loop)
        self.controller = Controller(self.router)
        self.store = open_store(store)
        self.applications = Applications(self.router, clock, self.store)
        self.models = RegisteredModels(self.controller, self.router, self.options)
        self.management = Management(self.store, self.applications, self.models)

    async def deploy(self, name: str, source: str, version: str = "1", current: bool = True, **more: Any) -> None:
        await self.management.deploy(ModelSpec(name, source, version=version, **more), current=current)

    async def ask(self, application: str = "app", version: str = "", seconds: float = 30.0) -> Answer:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        parts = [Part("", "application/json", b"%d" % next(_ids))]
        request = Request("r", "", parts, "*/*", time.monotonic() + seconds, version=version)
        self.applications.served[application].ask(request, answered.set_result)
        return await answered

    async def output(self, **options: Any) -> str:
        answer = await self.ask(**options)
        return answer.output.decode() if not answer.cause else answer.cause

    async def stop(self) -> None:
        await self.management.stop()
        await self.controller.stop()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Server]:
    server = Server(folder / "state" / "state.db", folder / "cache")
    try:
        await server.management.start()
        yield server
    finally:
        await server.stop()


def application(name: str = "app", **more: Any) -> Application:
    return Application(name, input_type="json", default_output="none", slo_micros=30_000_000, **more)


def test_what_is_registered_is_served_and_is_found_again_by_the_next_server(tmp_path: Path) -> None:
    async def test() -> None:
        one, two = hooks(tmp_path, "one", "one"), hooks(tmp_path, "two", "two")
        async with serving(tmp_path) as server:
            await server.management.register(application())
            assert await server.output() == "no_replica"
            await server.deploy("m", one, replicas=2, labels=("a",))
            await server.management.link("app", ("m",))
            assert await server.output() == '"one"'
            await server.deploy("m", two, "2")
            assert await server.output() == '"two"'
            assert await server.output(version="1") == '"one"'
            await server.management.use("m", "1")
            assert await server.output() == '"one"'
            before = server.management.desired
        async with serving(tmp_path) as server:
            assert server.management.desired == before
            await until(lambda: len(server.router.versions) == 2 and not server.models._work)
            assert await server.output() == '"one"'
            assert await server.output(version="2") == '"two"'
            assert len(server.router.versions["m", "1"].batcher.slots) == 2

    run(test)


def test_after_a_restart_a_name_never_means_a_version_that_is_not_current(tmp_path: Path) -> None:
    async def test() -> None:
        old, new = hooks(tmp_path, "old", "old"), tmp_path / "new.py"
        hooks(tmp_path, "new", "new")
        async with serving(tmp_path) as server:
            await server.management.register(application())
            await server.deploy("m", old)
            await server.deploy("m", str(new), "2")
            await server.management.link("app", ("m",))
        new.write_text("raise RuntimeError('gone bad')\n" + new.read_text())
        async with serving(tmp_path) as server:
            await until(lambda: ("m", "2") in server.management.failures and ("m", "1") in server.router.versions)
            await until(lambda: bool(server.router.versions["m", "1"].batcher.slots))
            assert await server.output() == "no_replica"
            assert await server.output(version="1") == '"old"'
            assert "gone bad" in server.management.failures["m", "2"]
            hooks(tmp_path, "new", "mended")
            await until(lambda: ("m", "2") not in server.management.failures and not server.models._work)
            assert await server.output() == '"mended"'

    run(test)


def test_of_a_model_that_cannot_be_deployed_nothing_is_left(tmp_path: Path) -> None:
    async def test() -> None:
        bad = tmp_path / "bad.py"
        bad.write_text("raise RuntimeError('no weights')\n")
        async with serving(tmp_path) as server:
            with pytest.raises(NotLoaded, match="no weights"):
                await server.deploy("m", str(bad))
            with pytest.raises(BadInput, match="no file"):
                await server.deploy("m", str(tmp_path / "nowhere.py"))
            assert server.management.desired == Desired()
            assert server.router.versions == {}
            assert server.controller.deployments == {}
            await server.deploy("m", hooks(tmp_path, "good", "good"))

    run(test)


def test_versions_roll_and_scale_and_go_under_load_and_no_query_is_lost(tmp_path: Path) -> None:
    async def test() -> None:
        sources = [hooks(tmp_path, f"v{i}", f"v{i}", delay=0.002) for i in range(3)]
        async with serving(tmp_path) as server:
            await server.management.register(application(cache_bytes=0))
            await server.deploy("m", sources[1])
            await server.management.link("app", ("m",))
            over = asyncio.Event()
            seen: list[str] = []

            async def ask() -> None:
                while not over.is_set():
                    seen.append(await server.output())

            asking = [asyncio.create_task(ask()) for _ in range(8)]
            await server.deploy("m", sources[2], "2")
            await server.management.use("m", "1")
            for replicas in (4, 1):
                await server.management.scale("m", None, replicas)
            await server.management.use("m", "2")
            await server.management.remove("m", "1")
            await server.deploy("m", sources[0], "3", current=False)
            await server.management.remove("m", "2")
            over.set()
            await asyncio.gather(*asking)
            assert set(seen) == {'"v0"', '"v1"', '"v2"'}
            assert len(seen) > 50

    run(test)


def test_servers_at_one_store_agree(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as one, serving(tmp_path) as two:
            await one.management.register(application())
            await one.deploy("m", hooks(tmp_path, "m1", "m1"))
            await one.management.link("app", ("m",))
            await until(lambda: "app" in two.applications.served and bool(two.applications.served["app"].models))
            await until(lambda: ("m", "1") in two.router.versions and not two.models._work)
            assert await two.output() == '"m1"'
            await two.deploy("m", hooks(tmp_path, "m2", "m2"), "2")
            await two.management.scale("m", "2", 2)
            await until(lambda: ("m", "2") in one.router.versions and not one.models._work)
            await until(lambda: len(one.router.versions["m", "2"].batcher.slots) == 2)
            assert await one.output() == '"m2"'
            await one.management.unregister("app")
            await one.management.remove("m")
            await until(lambda: not two.applications.served and not two.router.versions)

    run(test)


def test_a_version_that_was_made_anew_elsewhere_is_loaded_anew(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as one, serving(tmp_path) as two:
            await one.management.register(application(cache_bytes=100_000))
            await one.deploy("m", hooks(tmp_path, "m1", "m1"))
            await one.management.link("app", ("m",))
            await until(lambda: ("m", "1") in two.router.versions and not two.models._work)
            before = two.router.versions["m", "1"]
            await one.management.remove("m", "1")
            await one.deploy("m", hooks(tmp_path, "m2", "m2"))
            await until(lambda: two.router.versions.get(("m", "1"), before) is not before and not two.models._work)
            assert await two.output() == '"m2"'

    run(test)


def test_models_of_the_run_keep_their_names_and_are_not_touched(tmp_path: Path) -> None:
    from cluster.harness import hook_file

    async def test() -> None:
        async with serving(tmp_path) as server:
            await server.deploy("m", hooks(tmp_path, "registered", "registered"))
        server = Server(tmp_path / "state" / "state.db", tmp_path / "cache")
        try:
            await server.controller.start([(ModelSpec("m", None), hook_file(tmp_path, ECHO))])
            mine = server.router.models["m"]
            await server.management.start()
            await until(lambda: ("m", "1") in server.management.failures)
            with pytest.raises(Conflict, match="'m' belongs to this run"):
                await server.deploy("m", hooks(tmp_path, "other", "other"), "2")
            with pytest.raises(Conflict):
                await server.management.scale("m", None, 2)
            with pytest.raises(Conflict):
                await server.management.remove("m")
            assert server.router.models == {"m": mine}
        finally:
            await server.stop()

    run(test)


def test_a_containerless_model_is_registered_and_nothing_runs_for_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            await server.management.register(application())
            await server.deploy("m", "", replicas=0)
            await server.management.link("app", ("m",))
            assert await server.output() == "no_replica"
            with pytest.raises(BadInput, match="containerless model"):
                await server.management.scale("m", None, 1)

    run(test)


def test_a_model_without_replicas_answers_no_replica_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            await server.management.register(application())
            await server.deploy("m", hooks(tmp_path, "m", "m"))
            await server.management.link("app", ("m",))
            await server.management.scale("m", None, 0)
            began = time.monotonic()
            assert await server.output() == "no_replica"
            assert time.monotonic() - began < 0.5

    run(test)


def test_what_does_not_exist_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            management = server.management
            for call in (management.remove("m"), management.use("m", "1"), management.scale("m", None, 1)):
                with pytest.raises(ModelNotFound):
                    await call
            for call in (
                management.unregister("app"),
                management.link("app", ("m",)),
                management.unlink("app", ("m",)),
            ):
                with pytest.raises(ApplicationNotFound):
                    await call

    run(test)


def test_what_a_policy_has_learned_is_found_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            await server.management.register(application(policy="exp3"))
            await server.deploy("a", hooks(tmp_path, "a", "a"))
            await server.deploy("b", hooks(tmp_path, "b", "b"))
            await server.management.link("app", ("a", "b"))
            told = asyncio.Event()
            parts = [Part("", "application/json", b"1")]
            request = Request("r", "", parts, "*/*", time.monotonic() + 30)
            server.applications.served["app"].learn(request, b'"a"', told.set)
            await told.wait()
            learned = server.applications.served["app"].policy.state()
        async with serving(tmp_path) as server:
            assert server.applications.served["app"].policy.state() == learned
            await server.management.unregister("app")
            await server.management.register(application(policy="exp3"))
            assert server.applications.served["app"].policy.state() != learned

    run(test)


def test_a_store_that_fails_changes_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:

            async def fail(_: object) -> Desired:
                raise StoreFailed("no space left on the device")

            change, server.store.change = server.store.change, fail  # type: ignore[method-assign,assignment]
            with pytest.raises(StoreFailed):
                await server.deploy("m", hooks(tmp_path, "m", "m"))
            assert server.router.versions == {}
            with pytest.raises(StoreFailed):
                await server.management.register(application())
            assert server.applications.served == {}
            server.store.change = change  # type: ignore[method-assign]
            await server.deploy("m", hooks(tmp_path, "m", "m"))

    run(test)
