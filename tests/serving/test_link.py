from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadInput, RequestError
from forecastle.messages import Response
from forecastle.replica.wire import (
    MAGIC,
    PREFIX,
    Answers,
    End,
    Failed,
    Info,
    Loading,
    Outcome,
    Piece,
    Pong,
    Ready,
    frame,
)
from forecastle.serving.link import ReplicaLink
from forecastle.serving.ticket import Result

INFO = Info("script", None, "MultiRecord", 1, 6, together=False, pings=False)


class Events:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def loading(self) -> None:
        self.told.append(("loading",))

    def ready(self, info: Info) -> None:
        self.told.append(("ready", info))

    def failed(self, reason: str, memory: bool) -> None:
        self.told.append(("failed", reason, memory))

    def answered(self, batch: int, results: list[Result], seconds: float) -> None:
        told = [r if isinstance(r, Response) else (r.type, r.message) for r in results]
        self.told.append(("answered", batch, told, seconds))

    def piece(self, batch: int, index: int, data: bytes) -> None:
        self.told.append(("piece", batch, index, data))

    def finished(self, batch: int, index: int, error: RequestError | None) -> None:
        self.told.append(("finished", batch, index, error and (error.type, error.message)))

    def ponged(self, healthy: bool, reason: str) -> None:
        self.told.append(("ponged", healthy, reason))

    def broke(self, reason: str) -> None:
        self.told.append(("broke", reason))

    def lost(self) -> None:
        self.told.append(("lost",))


def answers(batch: int, *bodies: bytes) -> bytes:
    outcomes = [Outcome("", "text/plain", len(body)) for body in bodies]
    return frame(Answers(batch, outcomes, 0.5), sum(map(len, bodies))) + b"".join(bodies)


@given(st.lists(st.binary(max_size=300), max_size=5), st.lists(st.integers(1, 80), min_size=1, max_size=40))
def test_frames_are_found_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = (
        frame(Loading()) + frame(Ready(INFO)) + answers(7, *bodies) + frame(Pong(True, "")) + frame(Failed("why", True))
    )
    events = Events()
    link = ReplicaLink(events)
    position, turn = 0, 0
    while position < len(stream):
        size = cuts[turn % len(cuts)]
        link.data_received(stream[position : position + size])
        position, turn = position + size, turn + 1
    assert events.told == [
        ("loading",),
        ("ready", INFO),
        ("answered", 7, [Response(body, "text/plain") for body in bodies], 0.5),
        ("ponged", True, ""),
        ("failed", "why", True),
    ]


def test_an_error_comes_back_as_its_class() -> None:
    events = Events()
    ReplicaLink(events).data_received(frame(Answers(1, [Outcome("BadInput", "x is wrong", 0)], 0.1)))
    assert events.told == [("answered", 1, [(BadInput.__name__, "x is wrong")], 0.1)]


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        PREFIX.pack(MAGIC, 0xFFFFFFFF, 0),
        PREFIX.pack(MAGIC, 4, 0) + b"\xff\xff\xff\xff",
        PREFIX.pack(MAGIC, 8, 0) + msgspec.msgpack.encode(["surely"]).ljust(8, b"\0"),
        frame(Answers(1, [Outcome("", "text/plain", 5)], 0.1), 3) + b"abc",
        frame(Answers(1, [Outcome("", "text/plain", -5)], 0.1), 3) + b"abc",
    ],
    ids=["http", "a huge length", "no msgpack", "another message", "lengths that disagree", "a negative length"],
)
def test_what_is_no_frame_ends_the_connection_with_the_reason(garbage: bytes) -> None:
    events = Events()
    link = ReplicaLink(events)
    link.data_received(garbage)
    link.data_received(frame(Loading()))
    ((what, reason),) = events.told
    assert what == "broke"
    assert "protocol" in reason


def test_a_closed_link_tells_nothing_more() -> None:
    events = Events()
    link = ReplicaLink(events)
    link.close()
    link.data_received(frame(Loading()))
    link.connection_lost(None)
    assert events.told == []


def test_an_answer_in_pieces_is_told_piece_by_piece_with_the_headers_that_a_hook_set() -> None:
    events = Events()
    begun = Answers(3, [Outcome("", "text/plain", 2, True, {"x-a": "b"})], 0.1)
    ends = [End(3, 0), End(3, 1, "BadInput", "no")]
    stream = frame(begun, 2) + b"he" + frame(Piece(3, 0), 3) + b"llo" + b"".join(map(frame, ends))
    ReplicaLink(events).data_received(stream)
    (_, _, (response,), _), *rest = events.told
    assert (response.body, response.content_type, response.headers) == (b"he", "text/plain", {"x-a": "b"})
    assert response.rest is not None
    assert rest == [("piece", 3, 0, b"llo"), ("finished", 3, 0, None), ("finished", 3, 1, ("BadInput", "no"))]
