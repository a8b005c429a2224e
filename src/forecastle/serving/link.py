"""The frontend's end of the connection to one replica."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, cast

import msgspec

from forecastle.errors import RequestError, from_wire
from forecastle.messages import Request, Response
from forecastle.replica.wire import (
    PREFIX,
    Answers,
    Batch,
    Cancel,
    End,
    Failed,
    Info,
    Item,
    Loading,
    Piece,
    Ping,
    Pong,
    Ready,
    ToFrontend,
    WireError,
    decode_to_frontend,
    frame,
    lengths,
)
from forecastle.serving.stream import Stream
from forecastle.serving.ticket import Result


class LinkEvents(Protocol):
    """What a link tells of its replica. After ``broke`` or ``lost`` it tells nothing more."""

    def loading(self) -> None:
        """The process is up."""

    def ready(self, info: Info) -> None:
        """The model is loaded."""

    def failed(self, reason: str, memory: bool) -> None:
        """The model could not be loaded; ``memory`` says that there was too little of it."""

    def answered(self, batch: int, results: list[Result], seconds: float) -> None:
        """A batch came back, with one result for each of its requests, in order; some may go on in pieces."""

    def piece(self, batch: int, index: int, data: bytes) -> None:
        """The next piece of one of its answers."""

    def finished(self, batch: int, index: int, error: RequestError | None) -> None:
        """One of its answers is whole, or failed on the way."""

    def ponged(self, healthy: bool, reason: str) -> None:
        """``ping_fn`` has answered."""

    def broke(self, reason: str) -> None:
        """What came over the connection was no frame; it is closed."""

    def lost(self) -> None:
        """The connection has closed."""


class ReplicaLink(asyncio.Protocol):
    """Sends batches, and tells its listener what comes back."""

    def __init__(self, events: LinkEvents) -> None:
        self._events: LinkEvents | None = events
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._pauses = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (called by the loop)."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its ancestry

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Tell that the replica has gone (called by the loop)."""
        events = self._events
        self.close()
        if events is not None:
            events.lost()

    def send(self, batch: int, requests: Sequence[Request], now: float) -> None:
        """Send the requests as one batch; their deadlines travel as what remains of them at ``now``."""
        if self._transport is None:
            return
        items: list[Item] = []
        payloads: list[bytes] = []
        total = 0
        for request in requests:
            parts = []
            for part in request.parts:
                size = len(part.data)
                total += size
                payloads.append(part.data)
                parts.append((part.name, part.content_type, size))
            items.append(Item(request.id, parts, request.accept, request.deadline - now, request.headers))
        self._transport.writelines([frame(Batch(batch, items), total), *payloads])

    def ping(self) -> None:
        """Ask the model's ``ping_fn``."""
        if self._transport is not None:
            self._transport.write(frame(Ping()))

    def cancel(self, batch: int, index: int) -> None:
        """Tell the replica that nobody reads this answer any more."""
        if self._transport is not None:
            self._transport.write(frame(Cancel(batch, index)))

    def pause(self) -> None:
        """Read nothing more from the replica for now; each call needs its ``resume``."""
        self._pauses += 1
        if self._pauses == 1 and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on, once every ``pause`` has been taken back."""
        self._pauses -= 1
        if self._pauses == 0 and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """End the connection, upon which the replica ends too; nothing more is told."""
        self._events = None
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Cut frames out of the stream (called by the loop)."""
        try:
            if self._buffer:
                self._buffer += data
                del self._buffer[: self._take(self._buffer)]
            else:
                taken = self._take(data)
                if taken < len(data):
                    self._buffer += data[taken:] if taken else data
        except (WireError, msgspec.DecodeError) as error:
            events = self._events
            self.close()
            if events is not None:
                events.broke(f"it broke the protocol: {error}")

    def _take(self, data: bytes | bytearray) -> int:
        """Handle every whole frame at the start of ``data``; return how many bytes they were."""
        taken = 0
        while len(data) - taken >= PREFIX.size:
            header_length, payload_length = lengths(data, taken)
            start = taken + PREFIX.size
            payload = start + header_length
            if len(data) < payload + payload_length:
                break
            self._handle(decode_to_frontend(data[start:payload]), data, payload, payload_length)
            taken = payload + payload_length
        return taken

    def _handle(self, header: ToFrontend, data: bytes | bytearray, offset: int, length: int) -> None:
        events = self._events
        if events is None:
            return
        if isinstance(header, Answers):
            events.answered(header.batch, self._results(header, data, offset, length), header.seconds)
        elif isinstance(header, Piece):
            events.piece(header.batch, header.index, bytes(data[offset : offset + length]))
        elif isinstance(header, End):
            error = from_wire(header.error, header.text) if header.error else None
            events.finished(header.batch, header.index, error)
        elif isinstance(header, Ready):
            events.ready(header.info)
        elif isinstance(header, Failed):
            events.failed(header.reason, header.memory)
        elif isinstance(header, Pong):
            events.ponged(header.healthy, header.reason)
        else:
            assert isinstance(header, Loading)
            events.loading()

    def _results(self, answers: Answers, data: bytes | bytearray, offset: int, length: int) -> list[Result]:
        end = offset + length
        results: list[Result] = []
        for index, outcome in enumerate(answers.outcomes):
            if outcome.error:
                results.append(from_wire(outcome.error, outcome.text, outcome.status))
                continue
            stop = offset + outcome.length
            body = bytes(data[offset:stop])
            if outcome.more or outcome.headers or outcome.status:
                rest = Stream(self, answers.batch, index) if outcome.more else None
                results.append(Response(body, outcome.text, outcome.headers, rest, outcome.status or 200))
            else:
                results.append(Response(body, outcome.text))
            offset = stop
        if offset != end:
            raise WireError("the answers' lengths do not add up to the payload")
        return results
