"""uvicorn's HTTP protocol, which bounds a silent or slow connection and says in our error shape what is not HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from forecastle.errors import BadInput, RequestError, SlowRequest
from forecastle.http.errors import error_reply
from forecastle.http.joined import JoinedWrites
from forecastle.http.request_id import request_id

HEAD_SECONDS = 30.0
"""How long the head of a request may take from its first byte; its body is bounded by the request's own deadline."""

_REASONS = {400: b"Bad Request", 408: b"Request Timeout"}


class Protocol(HttpToolsProtocol):
    """One connection."""

    head_seconds = HEAD_SECONDS
    _begun = False
    _slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin (called by the loop); a connection that says nothing is closed like one that says nothing more."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type] # it is one in all it does
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """End (called by the loop)."""
        self._in_time()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A request has begun (called by the parser)."""
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is there (called by the parser)."""
        self._begun = False
        if self._slow is not None:
            self._in_time()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Parse (called by the loop). Only a head that comes in several pieces costs a timer."""
        super().data_received(data)
        if self._begun and self._slow is None:
            self._slow = self.loop.call_later(self.head_seconds, self._give_up)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - ours says more
        """Answer what is no HTTP (called by uvicorn)."""
        self._refuse(
            BadInput("this is no valid HTTP/1.1 request: its first line, a header or the framing of its body is wrong")
        )

    def _give_up(self) -> None:
        self._slow = None
        self._refuse(
            SlowRequest(f"the head of the request did not arrive within {self.head_seconds:g} s: send it faster")
        )

    def _in_time(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _refuse(self, error: RequestError) -> None:
        status, headers, body = error_reply(error, request_id(None))
        lines = [b"%b: %b\r\n" % pair for pair in [*headers, (b"connection", b"close")]]
        self.transport.write(b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, _REASONS[status], b"".join(lines), body))
        self.transport.close()
