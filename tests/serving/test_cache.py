from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import Cancelled, DeadlineExceeded, PredictionFailed
from forecastle.messages import Part, Request, Response
from forecastle.serving.cache import Cache
from forecastle.serving.stream import Stream
from forecastle.serving.ticket import Done, Result, Ticket
from serving.fakes import FakeClock


class Model:
    """Stands where the router would, and answers when it is told to."""

    def __init__(self) -> None:
        self.tickets: list[Ticket] = []

    def submit(self, request: Request, done: Done) -> Ticket:
        self.tickets.append(Ticket(request, done, 0.0))
        return self.tickets[-1]


class World:
    def __init__(self, limit: int = 100_000, seconds: float = 0.0) -> None:
        self.clock = FakeClock()
        self.model = Model()
        self.cache = Cache(limit, seconds, self.clock)
        self.results: list[Result] = []

    def ask(
        self, data: bytes = b"x", generation: int = 1, done: Done | None = None, deadline: float = 200.0, **more: object
    ) -> object:
        part = Part(str(more.pop("part", "")), str(more.pop("content_type", "")), data)
        fields = {"model": "m", "accept": "*/*", **more}
        request = Request("r", parts=[part], deadline=deadline, **fields)  # type: ignore[arg-type]
        return self.cache.ask(request, generation, self.model.submit, done or self.results.append)

    def answer(self, result: Result | None = None) -> None:
        self.model.tickets[-1].settle(result or Response(b"1", "application/json"))

    @property
    def asked(self) -> int:
        return len(self.model.tickets)


@pytest.fixture
def world() -> World:
    return World()


def test_what_is_known_is_answered_at_once_and_never_asked_again(world: World) -> None:
    world.ask()
    world.answer()
    assert world.ask() is None
    assert world.results == [Response(b"1", "application/json")] * 2
    assert (world.asked, world.cache.hits, world.cache.misses) == (1, 1, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"data": b"y"},
        {"generation": 2},
        {"model": "n"},
        {"accept": "text/csv"},
        {"content_type": "text/csv"},
        {"part": "input0"},
    ],
)
def test_only_what_is_equal_in_everything_is_the_same_question(world: World, other: dict[str, object]) -> None:
    world.ask()
    world.answer()
    assert world.ask(**other) is not None  # type: ignore[arg-type]
    assert world.asked == 2


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3), st.binary(max_size=3)), max_size=3, unique=True))
def test_questions_with_other_parts_are_other_questions(parts: list[tuple[str, str, bytes]]) -> None:
    world = World()
    orders = {tuple(parts), tuple(reversed(parts)), tuple(parts[:1])}
    for order in orders:
        request = Request("r", "m", [Part(*each) for each in order], "*/*", 200.0)
        world.cache.ask(request, 1, world.model.submit, world.results.append)
    assert world.asked == len(orders)


def test_those_who_ask_the_same_meanwhile_share_one_prediction(world: World) -> None:
    for _ in range(3):
        world.ask()
    world.answer()
    assert (world.asked, len(world.results), world.cache.joined) == (1, 3, 2)


def test_the_prediction_outlives_the_first_who_asked_and_ends_with_the_last(world: World) -> None:
    seats = [world.ask() for _ in range(3)]
    for seat in seats[:2]:
        seat.cancel()  # type: ignore[attr-defined]
    assert not world.model.tickets[0].settled
    world.answer()
    assert world.results == [Response(b"1", "application/json")]
    seats = [world.ask(b"y") for _ in range(2)]
    for seat in seats:
        seat.cancel()  # type: ignore[attr-defined]
    assert world.model.tickets[1].settled
    assert len(world.results) == 1
    world.ask(b"y")
    assert world.asked == 3


def test_leaving_twice_or_too_late_changes_nothing(world: World) -> None:
    first, second = world.ask(), world.ask()
    for _ in range(2):
        first.cancel()  # type: ignore[attr-defined]
    world.answer()
    second.cancel()  # type: ignore[attr-defined]
    assert len(world.results) == 1
    assert not any(isinstance(result, Cancelled) for result in world.results)


def test_a_shared_prediction_has_until_the_latest_deadline(world: World) -> None:
    world.ask(deadline=150.0)
    world.ask(deadline=170.0)
    world.ask(deadline=160.0)
    assert world.model.tickets[0].request.deadline == 170.0


@pytest.mark.parametrize("failure", [PredictionFailed("no"), DeadlineExceeded("late")])
def test_a_failure_is_told_to_all_and_never_kept(world: World, failure: Exception) -> None:
    world.ask()
    world.ask()
    world.answer(failure)  # type: ignore[arg-type]
    assert world.results == [failure, failure]
    world.ask()
    assert world.asked == 2
    assert world.cache.size == 0


def test_an_answer_in_pieces_is_never_kept(world: World) -> None:
    world.ask()
    world.answer(Response(b"1", "application/json", rest=Stream.__new__(Stream)))
    world.ask()
    assert world.asked == 2


def test_a_request_with_headers_for_hooks_goes_past_the_cache(world: World) -> None:
    for _ in range(2):
        world.ask(headers={"x-tenant": "a"})
    assert world.asked == 2
    world.answer()
    assert len(world.cache) == 0


def test_an_answer_is_kept_as_long_as_was_said() -> None:
    world = World(seconds=10.0)
    world.ask()
    world.answer()
    world.clock.advance(9.9)
    assert world.ask() is None
    world.clock.advance(0.2)
    world.ask()
    assert world.asked == 2
    world.answer()
    assert world.ask() is None


def test_what_was_used_least_lately_makes_room() -> None:
    world = World(limit=3000)
    for data in (b"a", b"b", b"c", b"d"):
        world.ask(data)
        world.answer()
    assert world.ask(b"a") is None
    world.ask(b"e")
    world.answer()
    assert world.cache.evicted == 1
    assert world.ask(b"a") is None
    assert world.ask(b"b") is not None


def test_what_is_larger_than_the_cache_drives_out_nothing() -> None:
    world = World(limit=3000)
    world.ask(b"a")
    world.answer()
    world.ask(b"b")
    world.answer(Response(b"1" * 3000, "application/json"))
    assert (len(world.cache), world.cache.evicted) == (1, 0)
    assert world.ask(b"a") is None


def test_what_is_purged_is_asked_again_and_what_is_under_way_is_not_kept(world: World) -> None:
    for model in ("m", "n"):
        world.ask(model=model)
        world.answer()
    world.ask(b"y")
    assert world.cache.purge("m") == 1
    world.answer()
    world.ask(b"y")
    world.ask(b"x")
    assert world.asked == 5
    assert world.ask(model="n") is None
    assert world.cache.purge() == 1
    assert world.cache.size == 0


def test_an_answer_that_comes_at_once_and_asks_anew_is_answered(world: World) -> None:
    def submit(request: Request, done: Done) -> Ticket:
        ticket = Ticket(request, done, 0.0)
        ticket.settle(Response(b"1", "application/json"))
        return ticket

    def again(result: Result) -> None:
        world.results.append(result)
        world.cache.ask(request, 1, submit, world.results.append)

    request = Request("r", "m", [Part("", "", b"x")], "*/*", 200.0)
    world.cache.ask(request, 1, submit, again)
    assert len(world.results) == 2


@pytest.mark.parametrize("body", [10, 1000])
def test_what_it_says_it_holds_is_what_it_takes(body: int) -> None:
    world = World(limit=1 << 20)

    def fill() -> None:
        for i in range(20_000):
            world.ask(i.to_bytes(body, "big"))
            world.answer(Response(i.to_bytes(body, "little"), "application/json"))
            world.model.tickets.clear()
            world.results.clear()

    taken = _taken(fill)
    assert world.cache.evicted > 0
    assert world.cache.size <= 1 << 20
    assert 0.5 * world.cache.size < taken < 1.05 * world.cache.size  # its tables grow by leaps


def _taken(work: Callable[[], None]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
