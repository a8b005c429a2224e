"""uvicorn's HTTP protocol, which answers at once what came whole, and bounds a connection that is silent or slow.

What is not HTTP it answers in our error shape.
"""

from __future__ import annotations

import asyncio
import math
import urllib.parse
from typing import Any

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from forecastle.errors import BadInput, RequestError, SlowRequest
from forecastle.http.errors import Headers, error_reply
from forecastle.http.joined import JoinedWrites
from forecastle.http.prompt import Prompt, PromptApp
from forecastle.http.reply import Reply
from forecastle.http.request_id import request_id

HEAD_SECONDS = 30.0
"""How long the head of a request may take from its first byte; its body is bounded by the request's own deadline."""

_REASONS = {400: b"Bad Request", 408: b"Request Timeout"}


class Protocol(HttpToolsProtocol):
    """One connection."""

    head_seconds = HEAD_SECONDS
    _begun = False
    _slow: asyncio.TimerHandle | None = None
    _held: list[bytes] | None = None  # what has come of the body of a request that may be answered promptly
    _prompt: Prompt | None = None  # the last one that was

    def connection_made(self, transport: Any) -> None:
        """Begin (called by the loop); a connection that says nothing is closed like one that says nothing more."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type] # it is one in all it does
        self._idle_since = self.loop.time()
        self._idle = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)
        self._prompts: PromptApp | None = self.app if hasattr(self.app, "predictions") else None

    def connection_lost(self, exc: Exception | None) -> None:
        """End (called by the loop)."""
        self._in_time()
        self._idle.cancel()
        super().connection_lost(exc)
        prompt = self._prompt
        if prompt is not None and not prompt.response_complete:
            prompt.disconnected = True
            prompt.set()

    def on_message_begin(self) -> None:
        """A request has begun (called by the parser)."""
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is there (called by the parser)."""
        self._begun = False
        if self._slow is not None:
            self._in_time()
        if self._prompts is not None and self._may_be_prompt():
            self._held = []
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body is there (called by the parser)."""
        if self._held is not None:
            self._held.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is there (called by the parser)."""
        if self._held is None:
            super().on_message_complete()
        elif not self._answer_promptly(b"".join(self._held)):
            self._go_the_long_way()
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse (called by the loop). Only a head that comes in several pieces costs a timer."""
        super().data_received(data)
        if self._held is not None:
            self._go_the_long_way()
        if self._begun and self._slow is None:
            self._slow = self.loop.call_later(self.head_seconds, self._give_up)

    def write(self, status: int, headers: Headers, body: bytes, *, keep_alive: bool) -> None:
        """Write a whole reply; the connection closes after it unless it is to be kept."""
        content = [STATUS_LINE[status]]
        for name, value in self.server_state.default_headers:
            content += (name, b": ", value, b"\r\n")
        for name, value in headers:
            content += (name, b": ", value, b"\r\n")
        content.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        content.append(body)
        self.transport.write(b"".join(content))
        if not keep_alive:
            self.transport.close()
        self.on_response_complete()

    def stream(self, prompt: Prompt, reply: Reply) -> None:
        """Write a reply whose body comes in pieces, the long way."""
        assert self._prompts is not None
        predictions = self._prompts.predictions

        async def app(_: Scope, receive: Receive, send: Send) -> None:
            await predictions.stream(reply, receive, send)

        cycle = self._cycle(keep_alive=prompt.keep_alive)
        cycle.more_body = False
        cycle.disconnected = prompt.disconnected
        if prompt.disconnected:
            cycle.message_event.set()
        if self._newest() is prompt:
            self.cycle = cycle
        self._start_asgi_task(cycle, app)  # type: ignore[arg-type] # uvicorn's types of ASGI are others

    def on_response_complete(self) -> None:
        """A reply was written: turn to the next request (called by uvicorn's cycles, and for prompt replies)."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._idle_since = self.loop.time()

    def interrupt(self) -> None:
        """End what was answered promptly, because the server stops."""
        if self._prompt is not None:
            self._prompt.interrupt()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - ours says more
        """Answer what is no HTTP (called by uvicorn)."""
        self._held = None
        self._refuse(
            BadInput("this is no valid HTTP/1.1 request: its first line, a header or the framing of its body is wrong")
        )

    def _may_be_prompt(self) -> bool:
        """Whether a request whose head is there may be answered promptly, if its body comes with it."""
        parser = self.parser
        if parser.get_method() != b"POST" or self.expect_100_continue or self.pipeline or self.flow.write_paused:
            return False
        newest = self._newest()
        if newest is not None and not newest.response_complete:
            return False
        # The keep-alive of HTTP/1.0 is another one, and rare.
        return parser.get_http_version() == "1.1" and parser.should_keep_alive() and not parser.should_upgrade()

    def _answer_promptly(self, body: bytes) -> bool:
        """Answer a request that has come whole; false where it is none for a prediction."""
        assert self._prompts is not None
        scope = self.scope
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        if "%" in path:
            path = urllib.parse.unquote(path)
        scope["method"] = "POST"
        scope["path"] = path
        scope["query_string"] = url.query or b""
        contract = self._prompts.contract(path, scope)  # type: ignore[arg-type] # uvicorn's own name for a scope
        if contract is None:
            return False
        self._held = None
        self._idle_since = math.inf
        self._prompt = prompt = Prompt(self, self._prompts.predictions)
        self.cycle = prompt  # type: ignore[assignment] # it stands in its place
        prompt.start(contract, scope, body)  # type: ignore[arg-type]
        return True

    def _go_the_long_way(self) -> None:
        """Begin what was held back."""
        held, self._held = self._held or [], None
        self._idle_since = math.inf
        super().on_headers_complete()
        for piece in held:
            super().on_body(piece)

    def _newest(self) -> RequestResponseCycle | Prompt | None:
        """Return the request that came last."""
        return self.cycle

    def _cycle(self, *, keep_alive: bool) -> RequestResponseCycle:
        return RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )

    def _unset_keepalive_if_required(self) -> None:
        """Something has come (called by uvicorn): a timer for each reply would cost more than all else here."""
        self._idle_since = math.inf

    def _close_if_idle(self) -> None:
        left = min(self._idle_since + self.timeout_keep_alive - self.loop.time(), self.timeout_keep_alive)
        if left > 0:
            self._idle = self.loop.call_later(left, self._close_if_idle)
        elif not self.transport.is_closing():
            self.transport.close()

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
