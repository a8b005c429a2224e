from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from forecastle.errors import Draining, ModelNotFound
from forecastle.messages import Request
from forecastle.replica.wire import Info
from forecastle.serving.router import Router
from forecastle.serving.slot import Slot
from serving.fakes import Collector, FakeClock, FakeLink
from serving.test_link import INFO


def on_loop(test: Callable[[Router, FakeClock], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        clock = FakeClock()
        await test(Router(asyncio.get_running_loop(), clock), clock)

    asyncio.run(run())


def submit(router: Router, clock: FakeClock, model: str) -> Collector:
    collector = Collector(clock)
    ticket = collector.ticket("r")
    request = Request("r", model, ticket.request.parts, "*/*", clock.time + 5)
    router.submit(request, collector.results["r"].append)
    return collector


def test_an_unknown_model_is_refused_with_the_names_of_those_served() -> None:
    async def test(router: Router, clock: FakeClock) -> None:
        router.add("cat")
        error = submit(router, clock, "dog").one("r")
        assert isinstance(error, ModelNotFound)
        assert "'dog'" in error.message
        assert "cat" in error.message

    on_loop(test)


def test_a_draining_server_takes_nothing_new() -> None:
    async def test(router: Router, clock: FakeClock) -> None:
        router.add("cat")
        router.draining = True
        assert isinstance(submit(router, clock, "cat").one("r"), Draining)
        assert not router.healthy()

    on_loop(test)


def test_a_server_without_models_is_not_healthy() -> None:
    async def test(router: Router, clock: FakeClock) -> None:
        assert not router.healthy()

    on_loop(test)


def test_health_needs_a_ready_replica_of_every_required_model() -> None:
    async def test(router: Router, clock: FakeClock) -> None:
        model = router.add("cat")
        router.add("optional", required=False)
        assert router.troubles() == ["no replica of 'cat' is ready"]
        model.learn(INFO)
        slot = Slot(FakeLink(), lambda: None)
        model.batcher.attach(slot)
        assert router.healthy()
        model.batcher.retire(slot)
        assert not router.healthy()

    on_loop(test)


def test_a_ping_fn_is_asked_and_its_no_makes_the_server_unhealthy() -> None:
    async def test(router: Router, clock: FakeClock) -> None:
        model = router.add("cat")
        model.learn(Info("script", None, "MultiRecord", 1, 6, together=False, pings=True))
        slot = Slot(FakeLink(), lambda: None)
        model.batcher.attach(slot)
        checking = asyncio.ensure_future(router.check())
        await asyncio.sleep(0)
        model.batcher.ponged(slot, healthy=False, reason="ping_fn says no")
        assert await checking == ["'cat': ping_fn says no"]

    on_loop(test)


def test_a_busy_replica_is_not_asked_and_counts_as_it_last_said() -> None:
    async def test(router: Router, clock: FakeClock) -> None:
        model = router.add("cat")
        model.learn(Info("script", None, "MultiRecord", 1, 6, together=False, pings=True))
        model.batcher.attach(Slot(FakeLink(), lambda: None))
        submit(router, clock, "cat")
        clock.turn()
        assert await router.check() == []

    on_loop(test)
