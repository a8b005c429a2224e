"""One prediction request, from ASGI to the serving core and back: the hot path.

What happens here happens for every request, so it allocates little and awaits only what it must: the body and the
answer. What is rare (a slow body, a client that goes away, an error) is set up when it turns out to be needed. A
request that came whole needs not even a task: see ``at_once`` and ``http.prompt``.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable
from functools import partial

from starlette.types import Receive, Scope, Send

from forecastle.errors import BadInput, RequestError
from forecastle.http.body import check_declared, linger, read_body, too_large
from forecastle.http.contract import Call, Contract, RequestHeaders
from forecastle.http.core import Core
from forecastle.http.errors import Headers, InternalError
from forecastle.http.exchange import Exchange
from forecastle.http.lateness import Lateness
from forecastle.http.reply import Pending, Reply, content_type_header, header
from forecastle.http.request_id import request_id
from forecastle.http.stats import HttpStats
from forecastle.http.stream import stream
from forecastle.messages import Response
from forecastle.serving.ticket import Result

TIMEOUT_HEADER = "X-Forecastle-Timeout"
"""The client's own limit for its request, in seconds as a decimal; it can only shorten the server's."""

_SECONDS = re.compile(rb"(\d{1,20}(\.\d{1,20})?)([eE][+-]?\d{1,3})?")
_WITHOUT_BODY = (204, 304)

log = logging.getLogger(__name__)


class Predictions:
    """Answers prediction requests; ``timeout`` is in seconds, ``max_body`` in bytes."""

    def __init__(self, core: Core, stats: HttpStats, *, timeout: float, max_body: int) -> None:
        self._core = core
        self._stats = stats
        self._timeout = timeout
        self._max_body = max_body
        self._lateness = Lateness()
        self._loop: asyncio.AbstractEventLoop | None = None
        # The content types that models answered with, checked and encoded: there are few, and each comes often.
        self._content_types: dict[str, bytes] = {}

    def at_once(self, contract: Contract, scope: Scope, body: bytes, answer: Callable[[Reply], None]) -> Pending:
        """Answer a request whose whole body is there, without a task: ``answer`` is called once, perhaps at once."""
        self._stats.in_flight += 1
        headers = _headers(scope)
        id_ = request_id(headers.get(b"x-request-id"))
        pending = Pending(contract, scope["path"], id_)
        accepted = time.monotonic()
        try:
            pending.model = contract.model(self._core, scope, headers)
            version = "" if contract.version is None else contract.version(scope)
            deadline = accepted + self._limit(headers)
            if len(body) > self._max_body:
                raise too_large(f"{len(body)} bytes", self._max_body)
            call = Call(id_, pending.model, body, headers, accepted, deadline, version)
            pending.ticket = contract.submit(self._core, call, partial(self._answered, pending, answer))
        except RequestError as error:
            self._answered(pending, answer, error)
        except Exception:  # noqa: BLE001 - logged there
            answer(self._broken(pending))
        return pending

    async def answer(self, contract: Contract, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; every one is answered, if only with an error, as long as its client is there."""
        self._stats.in_flight += 1
        headers = _headers(scope)
        pending = Pending(contract, scope["path"], request_id(headers.get(b"x-request-id")))
        if self._loop is None:
            # Asked for once: before Python 3.12 the interpreter asks the kernel for its process id each time.
            self._loop = asyncio.get_running_loop()
        exchange = Exchange(receive, time.monotonic() + self._timeout, self._loop)
        closing = False
        try:
            pending.model = contract.model(self._core, scope, headers)
            version = "" if contract.version is None else contract.version(scope)
            reply = self.reply(pending, await self._predict(pending, version, headers, exchange))
        except RequestError as error:
            reply = self.reply(pending, error)
            closing = not exchange.read and (reply.status == 413 or exchange.expired or b"expect" in headers)
        except Exception:  # noqa: BLE001 - logged there
            reply = self._broken(pending)
        if reply.rest is not None:
            await self.stream(reply, receive, send)
            return
        try:
            if closing:
                await _send_and_close(reply, receive, send)
            else:
                await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
                await send({"type": "http.response.body", "body": reply.body})
        finally:
            self._stats.in_flight -= 1

    def reply(self, pending: Pending, result: Result) -> Reply:
        """Make the reply of a result, and count it."""
        contract, id_ = pending.contract, pending.id
        try:
            if not isinstance(result, Response):
                raise result
            status, headers, rest = result.status, self._reply_headers(result, id_), result.rest
            if status in _WITHOUT_BODY:
                body, rest = b"", None
            elif rest is None:
                body = contract.body(result)
                headers.append((b"content-length", b"%d" % len(body)))
            else:
                body = result.body
        except RequestError as error:
            status, headers, body = contract.fail(error, id_)
            rest = None
            self._stats.count_error(contract.route, error.type)
        self._stats.count(contract.route, pending.model, status)
        return Reply(status, headers, body, rest, pending)

    async def stream(self, reply: Reply, receive: Receive, send: Send) -> None:
        """Send a reply whose body comes in pieces."""
        pending, rest = reply.pending, reply.rest
        assert rest is not None
        try:
            broken = await stream(reply.headers, reply.body, rest, receive, send)
            if broken is not None:
                log.warning("the answer to request %s was not whole: %s", pending.id, broken.message)
                self._stats.count_error(pending.contract.route, broken.type)
        finally:
            self._stats.in_flight -= 1

    def _answered(self, pending: Pending, answer: Callable[[Reply], None], result: Result) -> None:
        try:
            reply = self.reply(pending, pending.instead or result)
        except Exception:  # noqa: BLE001 - logged there
            reply = self._broken(pending)
        if reply.rest is None:
            self._stats.in_flight -= 1
        answer(reply)

    def _broken(self, pending: Pending) -> Reply:
        """Make the reply to a request that met a defect of ours; called while the exception is handled."""
        log.exception("request %s to %s failed inside the server", pending.id, pending.path)
        return self.reply(pending, InternalError())

    def _limit(self, headers: RequestHeaders) -> float:
        """Return the seconds that a request has."""
        timeout = headers.get(b"x-forecastle-timeout")
        return self._timeout if timeout is None else min(self._timeout, parse_timeout(timeout))

    async def _predict(self, pending: Pending, version: str, headers: RequestHeaders, exchange: Exchange) -> Response:
        accepted = exchange.deadline - self._timeout
        exchange.deadline = accepted + self._limit(headers)
        check_declared(headers.get(b"content-length"), self._max_body)
        self._lateness.add(exchange)
        try:
            data = await read_body(exchange.receive, self._max_body)
            exchange.read = True
            call = Call(pending.id, pending.model, data, headers, accepted, exchange.deadline, version)
            future: asyncio.Future[Result] = exchange.loop.create_future()
            exchange.submitted(pending.contract.submit(self._core, call, partial(_settle, future)))
            result = await future
        except asyncio.CancelledError:
            raise exchange.interrupted() from None
        finally:
            self._lateness.discard(exchange)
            exchange.end()
        if isinstance(result, Response):
            return result
        raise result

    def _reply_headers(self, response: Response, id_: str) -> Headers:
        content_type = self._content_types.get(response.content_type)
        if content_type is None:
            content_type = content_type_header(response.content_type)
            if len(self._content_types) < 1000:  # a hook may make up as many as it likes
                self._content_types[response.content_type] = content_type
        reply = [(b"content-type", content_type), (b"x-request-id", id_.encode("ascii"))]
        if response.headers:
            reply += [header(name, value) for name, value in response.headers.items()]
        return reply


def parse_timeout(value: bytes) -> float:
    """Return the seconds that a client gives its request.

    Raises:
        BadInput: it is no positive decimal.
    """
    seconds = float(value) if _SECONDS.fullmatch(value) else 0.0
    if 0.0 < seconds < math.inf:
        return seconds
    found = value[:40].decode("latin-1")
    raise BadInput(f"the header {TIMEOUT_HEADER} is {found!r}: it must be a positive number of seconds such as 0.5")


def _headers(scope: Scope) -> dict[bytes, bytes]:
    pairs: Headers = scope["headers"]
    headers = dict(pairs)
    if len(headers) == len(pairs):
        return headers
    joined: dict[bytes, bytes] = {}
    for name, value in pairs:
        joined[name] = joined[name] + b", " + value if name in joined else value
    return joined


def _settle(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():  # the task that waited may have been cancelled meanwhile
        future.set_result(result)


async def _send_and_close(reply: Reply, receive: Receive, send: Send) -> None:
    headers = [*reply.headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body, "more_body": True})
    await linger(receive)
    await send({"type": "http.response.body", "body": b""})
