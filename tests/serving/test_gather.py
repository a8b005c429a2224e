from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import Cancelled, DeadlineExceeded, PredictionFailed
from forecastle.messages import Part, Request, Response
from forecastle.serving.deadlines import Deadlines
from forecastle.serving.gather import Gather
from forecastle.serving.ticket import Done, Ticket
from serving.fakes import FakeClock


class Models:
    """Keeps who was asked, and answers when the test says so."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.deadlines = Deadlines(clock)
        self.asked: dict[str, Ticket] = {}
        self.completed: list[Gather] = []

    def ask(self, request: Request, done: Done) -> Ticket:
        self.asked[request.model] = Ticket(request, done, self.clock.time)
        return self.asked[request.model]

    def gather(self, *names: str, seconds: float = 1.0) -> Gather:
        gather = Gather(self.clock.time + seconds, self.deadlines, self.completed.append)
        request = Request("r", "", [Part("", "", b"x")], "*/*", self.clock.time + seconds)
        gather.start(request, names, self.ask)
        return gather


def answer(text: str) -> Response:
    return Response(text.encode(), "application/json")


def test_it_completes_once_all_have_answered() -> None:
    models = Models(FakeClock())
    gather = models.gather("a", "b")
    models.asked["b"].settle(answer("2"))
    assert models.completed == []
    models.asked["a"].settle(answer("1"))
    assert models.completed == [gather]
    assert gather.outputs == {"a": b"1", "b": b"2"}
    assert len(models.deadlines) == 0


def test_each_model_gets_a_request_of_its_own() -> None:
    models = Models(FakeClock())
    models.gather("a", "b", "c")
    requests = [ticket.request for ticket in models.asked.values()]
    assert [request.model for request in requests] == ["a", "b", "c"]
    assert len({id(request) for request in requests}) == 3


def test_at_the_deadline_it_completes_with_what_has_come_and_waits_for_nobody() -> None:
    clock = FakeClock()
    models = Models(clock)
    gather = models.gather("a", "b")
    models.asked["a"].settle(answer("1"))
    clock.advance(2)
    assert models.completed == [gather]
    assert gather.outputs == {"a": b"1"}
    assert models.asked["b"].settled
    models.asked["b"].settle(answer("2"))
    assert len(models.completed) == 1


def test_with_nothing_at_the_deadline_the_error_says_so() -> None:
    clock = FakeClock()
    models = Models(clock)
    gather = models.gather("a")
    clock.advance(2)
    assert isinstance(gather.error, DeadlineExceeded)


def test_a_client_that_goes_cancels_every_prediction() -> None:
    models = Models(FakeClock())
    gather = models.gather("a", "b")
    models.asked["a"].settle(answer("1"))
    gather.cancel()
    gather.cancel()
    assert models.completed == [gather]
    assert gather.outputs == {}
    assert isinstance(gather.error, Cancelled)
    assert models.asked["b"].settled


def test_an_answer_that_is_no_json_counts_as_an_error() -> None:
    models = Models(FakeClock())
    gather = models.gather("a")
    models.asked["a"].settle(answer("{"))
    assert gather.outputs == {}
    assert gather.error is not None
    assert gather.error.type == "BadOutput"


EVENTS = st.lists(st.sampled_from(["a", "b", "c", "a fails", "b fails", "time", "cancel"]), max_size=8)


@given(EVENTS)
def test_whatever_happens_it_completes_exactly_once(events: list[str]) -> None:
    clock = FakeClock()
    models = Models(clock)
    gather = models.gather("a", "b", "c")
    for event in [*events, "time"]:
        name, _, fails = event.partition(" ")
        if event == "time":
            clock.advance(2)
        elif event == "cancel":
            gather.cancel()
        else:
            models.asked[name].settle(PredictionFailed("no") if fails else answer(f'"{name}"'))
    assert models.completed == [gather]
    assert all(ticket.settled for ticket in models.asked.values())
    assert all(output == b'"%b"' % name.encode() for name, output in gather.outputs.items())
    assert len(models.deadlines) == 0
