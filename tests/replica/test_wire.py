from __future__ import annotations

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.models.signature import Signature, Tensor
from forecastle.replica.channel import JOIN_BELOW, Channel
from forecastle.replica.wire import (
    MAGIC,
    MAX_HEADER,
    MAX_PAYLOAD,
    PREFIX,
    Answers,
    Batch,
    Failed,
    Info,
    Item,
    Loading,
    Outcome,
    Ping,
    Pong,
    Ready,
    ToFrontend,
    ToReplica,
    WireError,
    decode_to_frontend,
    decode_to_replica,
    frame,
    lengths,
)

SIGNATURE = Signature((Tensor("x", (None, 3)),), (Tensor("y", (None,), "int64"),))
TO_FRONTEND: list[ToFrontend] = [
    Answers(3, [Outcome("", "text/plain", 4), Outcome("BadInput", "é", 0)], 0.25),
    Answers(4, [Outcome("", "text/plain", 4, status=201), Outcome("PredictionFailed", "no", 0, status=599)], 0.25),
    Loading(),
    Ready(Info("onnx", SIGNATURE, "MultiRecord", 1, 6, together=True, pings=False)),
    Failed("no such file"),
    Pong(healthy=False, reason="tired"),
]
TO_REPLICA: list[ToReplica] = [Batch(3, [Item("id", [("input0", "image/jpeg", 9)], "*/*", 1.5)]), Ping()]


@pytest.mark.parametrize("message", [*TO_FRONTEND, *TO_REPLICA], ids=lambda message: type(message).__name__)
def test_reading_undoes_writing(message: ToFrontend | ToReplica) -> None:
    encoded = frame(message, 42)
    header, payload = lengths(encoded)
    decode = decode_to_replica if isinstance(message, Batch | Ping) else decode_to_frontend
    assert decode(encoded[PREFIX.size : PREFIX.size + header]) == message
    assert payload == 42


@pytest.mark.parametrize(
    "prefix",
    [PREFIX.pack(b"HTTP", 1, 1), PREFIX.pack(MAGIC, MAX_HEADER + 1, 0), PREFIX.pack(MAGIC, 0, MAX_PAYLOAD + 1)],
)
def test_a_bad_prefix_is_refused_before_anything_is_allocated(prefix: bytes) -> None:
    with pytest.raises(WireError):
        lengths(prefix)


@given(st.lists(st.sampled_from([0, 1, 100, JOIN_BELOW - 1, JOIN_BELOW + 1]), max_size=3))
def test_payloads_arrive_whole_whatever_their_size(sizes: list[int]) -> None:
    ours, theirs = socket.socketpair()
    bodies = [bytes([i]) * size for i, size in enumerate(sizes)]
    outcomes = [Outcome("", "", size) for size in sizes]
    with ours, theirs:
        writer = threading.Thread(target=Channel(ours).send, args=(Answers(1, outcomes, 0.0), bodies))
        writer.start()
        with theirs.makefile("rb") as stream:
            header, payload = lengths(stream.read(PREFIX.size))
            stream.read(header)
            assert stream.read(payload) == b"".join(bodies)
        writer.join()


def test_the_end_of_the_connection_between_frames_is_no_error() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        assert Channel(ours).receive() is None


def test_the_end_of_the_connection_inside_a_frame_is_one() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(frame(Ping(), 100))
        theirs.close()
        with pytest.raises(WireError):
            Channel(ours).receive()
