from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from forecastle.errors import (
    BadInput,
    BadOutput,
    Cancelled,
    DeadlineExceeded,
    Draining,
    ModelNotFound,
    NoReplica,
    Overloaded,
    PredictionFailed,
    ReplicaDied,
    RequestError,
)
from forecastle.messages import Part, Request, Response
from forecastle.serving.application import Answer, ServedApplication, cause_of
from forecastle.serving.cache import Cache
from forecastle.serving.router import Router
from forecastle.serving.selection import make
from forecastle.serving.slot import Slot
from serving.fakes import FakeClock, FakeLink


class World:
    """A router with models whose replicas are fakes, and one application."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.router = Router(asyncio.get_running_loop(), clock)
        self.links: dict[tuple[str, str], FakeLink] = {}
        self.slots: dict[tuple[str, str], Slot] = {}
        self.answers: list[Answer] = []
        self.application = self.serve()

    def serve(self, *models: str, policy: str = "current", cache: int = 0, **options: Any) -> ServedApplication:
        self.application = ServedApplication(
            "app",
            input_type="json",
            default=b'"none"',
            slo=1.0,
            models=models,
            policy=make(policy, options, Random(1)),
            cache=Cache(cache, 0.0, self.clock) if cache else None,
            router=self.router,
            clock=self.clock,
        )
        return self.application

    def model(self, name: str, version: str = "1") -> None:
        model = self.router.add(name, version=version, batch_size=8)
        link = FakeLink()
        self.links[name, version] = link
        self.slots[name, version] = Slot(link, lambda: None)
        model.batcher.attach(self.slots[name, version])

    def ask(self, data: bytes = b"1", version: str = "") -> Any:
        request = Request("r", "", [Part("", "", data)], "*/*", self.clock.time + 1.0, version=version)
        gather = self.application.ask(request, self.answers.append)
        self.clock.turn()
        return gather

    def answer(self, name: str, text: bytes | RequestError, version: str = "1") -> None:
        batch, requests = self.links[name, version].sent[-1]
        result = Response(text, "application/json") if isinstance(text, bytes) else text
        batcher = self.router.versions[name, version].batcher
        assert batcher.answered(self.slots[name, version], batch, [result] * len(requests), 0.001)
        self.clock.turn()


def in_a_world(test: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await test(World(FakeClock()))

    asyncio.run(run())


def test_an_answer_of_the_linked_model_is_the_applications() -> None:
    async def test(world: World) -> None:
        world.model("m")
        world.serve("m")
        world.ask()
        world.answer("m", b"[1]")
        assert world.answers == [Answer(b"[1]")]
        assert (world.application.stats.queries, world.application.stats.answered) == (1, 1)

    in_a_world(test)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (DeadlineExceeded("x"), "deadline"),
        (Overloaded("x"), "overload"),
        (NoReplica("x"), "no_replica"),
        (ModelNotFound("x"), "no_replica"),
        (PredictionFailed("x"), "error"),
        (BadInput("x"), "error"),
        (BadOutput("x"), "error"),
        (ReplicaDied("x"), "error"),
    ],
)
def test_what_a_model_does_not_answer_is_the_default_with_its_cause(error: RequestError, cause: str) -> None:
    async def test(world: World) -> None:
        world.model("m")
        world.serve("m")
        world.ask()
        world.answer("m", error)
        assert world.answers == [Answer(b'"none"', cause, error)]
        assert world.application.stats.defaults[cause] == 1
        assert sum(world.application.stats.defaults.values()) == 1

    assert cause_of(error) == cause
    in_a_world(test)


def test_without_a_link_the_default_comes_at_once() -> None:
    async def test(world: World) -> None:
        world.serve()
        world.ask()
        (answer,) = world.answers
        assert answer.cause == "no_replica"
        assert world.application.waiting == 0

    in_a_world(test)


def test_a_linked_model_that_is_gone_is_no_replica() -> None:
    async def test(world: World) -> None:
        world.serve("gone", cache=1000)
        world.ask()
        assert [answer.cause for answer in world.answers] == ["no_replica"]

    in_a_world(test)


def test_the_default_comes_when_the_objective_is_over_and_a_late_answer_changes_nothing() -> None:
    async def test(world: World) -> None:
        world.model("m")
        world.serve("m")
        world.ask()
        world.clock.advance(0.9)
        assert world.answers == []
        world.clock.advance(0.2)
        assert [answer.cause for answer in world.answers] == ["deadline"]
        world.answer("m", b"1")
        assert len(world.answers) == 1

    in_a_world(test)


def test_a_server_that_stops_fails_its_queries_and_defaults_none() -> None:
    async def test(world: World) -> None:
        world.model("m")
        world.serve("m")
        world.router.draining = True
        world.ask()
        (answer,) = world.answers
        assert (answer.cause, type(answer.error)) == ("", Draining)
        assert world.application.stats.failed == 1

    in_a_world(test)


def test_a_client_that_goes_is_counted_and_defaulted_not() -> None:
    async def test(world: World) -> None:
        world.model("m")
        world.serve("m")
        world.ask().cancel()
        (answer,) = world.answers
        assert (answer.cause, type(answer.error)) == ("", Cancelled)
        assert world.application.stats.cancelled == 1
        assert world.router.models["m"].stats.cancelled == 1

    in_a_world(test)


def test_a_query_may_name_a_version_and_one_that_does_not_exist_is_refused() -> None:
    async def test(world: World) -> None:
        world.model("m", "1")
        world.model("m", "2")
        world.serve("m")
        world.router.use("m", "2")
        world.application.check_version("1")
        world.ask(version="1")
        world.answer("m", b'"one"', "1")
        world.ask()
        world.answer("m", b'"two"', "2")
        assert [answer.output for answer in world.answers] == [b'"one"', b'"two"']
        with pytest.raises(ModelNotFound, match="Requested version: 3 does not exist for model: m"):
            world.application.check_version("3")
        world.application.models = ("m", "n")
        with pytest.raises(BadInput, match="Too many models linked to application app"):
            world.application.check_version("1")
        world.application.models = ()
        with pytest.raises(BadInput):
            world.application.check_version("1")

    in_a_world(test)


def test_a_cached_answer_is_another_versions_never() -> None:
    async def test(world: World) -> None:
        world.model("m", "1")
        world.serve("m", cache=100_000)
        world.ask(b"x")
        world.answer("m", b'"one"')
        world.ask(b"x")
        assert [answer.output for answer in world.answers] == [b'"one"', b'"one"']
        assert len(world.links["m", "1"].sent) == 1
        world.model("m", "2")
        world.router.use("m", "2")
        world.ask(b"x")
        world.answer("m", b'"two"', "2")
        assert world.answers[-1].output == b'"two"'
        world.router.use("m", "1")
        world.ask(b"x")
        assert world.answers[-1].output == b'"one"'

    in_a_world(test)


def test_a_default_is_never_cached() -> None:
    async def test(world: World) -> None:
        world.model("m")
        world.serve("m", cache=100_000)
        world.ask(b"x")
        world.answer("m", PredictionFailed("no"))
        world.ask(b"x")
        world.answer("m", b"1")
        assert [answer.cause for answer in world.answers] == ["error", ""]

    in_a_world(test)


def test_the_answers_of_an_ensemble_are_combined_at_the_deadline_with_what_has_come() -> None:
    async def test(world: World) -> None:
        for name in "abc":
            world.model(name)
        world.serve("a", "b", "c", policy="ensemble")
        world.ask()
        for name in "abc":
            world.answer(name, b"1" if name != "c" else b"2")
        assert world.answers[-1] == Answer(b"1", confidence=pytest.approx(2 / 3))  # type: ignore[arg-type]
        world.ask()
        world.answer("a", b"1")
        world.clock.advance(1.1)
        assert world.answers[-1] == Answer(b"1", confidence=pytest.approx(1 / 3))  # type: ignore[arg-type]
        world.ask()
        world.clock.advance(1.1)
        assert world.answers[-1].cause == "deadline"

    in_a_world(test)


def test_shadow_models_are_asked_and_their_answers_dropped() -> None:
    async def test(world: World) -> None:
        world.model("a")
        world.model("b")
        world.serve("a", "b", policy="shadow")
        world.ask()
        world.answer("a", b"1")
        assert world.answers == [Answer(b"1")]
        world.answer("b", b"2")
        assert len(world.answers) == 1
        assert len(world.links["b", "1"].sent) == 1

    in_a_world(test)


def test_feedback_teaches_the_policy_once_every_model_has_said_what_it_thinks() -> None:
    async def test(world: World) -> None:
        for name in "ab":
            world.model(name)
        application = world.serve("a", "b", policy="exp4", cache=100_000)
        before = application.policy.state()
        told: list[str] = []
        request = Request("r", "", [Part("", "", b"x")], "*/*", world.clock.time + 1.0)
        application.learn(request, b"1", lambda: told.append("done"))
        world.clock.turn()
        world.answer("a", b"1")
        world.answer("b", b"2")
        assert told == ["done"]
        assert application.learned
        assert application.policy.state() != before

    in_a_world(test)
