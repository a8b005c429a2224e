"""One prediction request, from ASGI to the serving core and back: the hot path.

What happens here happens for every request, so it allocates little and awaits only what it must: the body and the
answer. What is rare (a slow body, a client that goes away, an error) is set up when it turns out to be needed.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from functools import partial

from starlette.types import Receive, Scope, Send

from forecastle.errors import BadInput, BadOutput, RequestError
from forecastle.http.body import check_declared, linger, read_body
from forecastle.http.contract import Call, Contract, RequestHeaders
from forecastle.http.core import Core
from forecastle.http.errors import Headers, InternalError
from forecastle.http.exchange import Exchange
from forecastle.http.lateness import Lateness
from forecastle.http.request_id import request_id
from forecastle.http.stats import HttpStats
from forecastle.http.stream import stream
from forecastle.messages import Pieces, Response
from forecastle.serving.ticket import Result

TIMEOUT_HEADER = "X-Forecastle-Timeout"
"""The client's own limit for its request, in seconds as a decimal; it can only shorten the server's."""

_SECONDS = re.compile(rb"(\d{1,20}(\.\d{1,20})?)([eE][+-]?\d{1,3})?")
_WITHOUT_BODY = (204, 304)
_CONTENT_TYPE = re.compile(r"[\x20-\x7e]{1,255}")

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

    async def answer(self, contract: Contract, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; every one is answered, if only with an error, as long as its client is there."""
        self._stats.in_flight += 1
        headers = _headers(scope)
        id_ = request_id(headers.get(b"x-request-id"))
        if self._loop is None:
            # Asked for once: before Python 3.12 the interpreter asks the kernel for its process id each time.
            self._loop = asyncio.get_running_loop()
        exchange = Exchange(receive, time.monotonic() + self._timeout, self._loop)
        model = ""
        closing = False
        rest: Pieces | None = None
        try:
            model = contract.model(self._core, scope, headers)
            version = "" if contract.version is None else contract.version(scope)
            response = await self._predict(contract, (model, version), headers, id_, exchange)
            status, reply, rest = response.status, self._reply_headers(response, id_), response.rest
            if status in _WITHOUT_BODY:
                body, rest = b"", None
            elif rest is None:
                body = contract.body(response)
                reply.append((b"content-length", b"%d" % len(body)))
            else:
                body = response.body
        except RequestError as error:
            status, reply, body = contract.fail(error, id_)
            closing = not exchange.read and (status == 413 or exchange.expired or b"expect" in headers)
            self._stats.count_error(contract.route, error.type)
        except Exception:
            log.exception("request %s to %s failed inside the server", id_, scope["path"])
            status, reply, body = contract.fail(InternalError(), id_)
            self._stats.count_error(contract.route, InternalError.__name__)
        self._stats.count(contract.route, model, status)
        try:
            if rest is not None:
                broken = await stream(reply, body, rest, receive, send)
                if broken is not None:
                    log.warning("the answer to request %s was not whole: %s", id_, broken.message)
                    self._stats.count_error(contract.route, broken.type)
            elif closing:
                await _send_and_close(status, reply, body, receive, send)
            else:
                await send({"type": "http.response.start", "status": status, "headers": reply})
                await send({"type": "http.response.body", "body": body})
        finally:
            self._stats.in_flight -= 1

    async def _predict(
        self, contract: Contract, target: tuple[str, str], headers: RequestHeaders, id_: str, exchange: Exchange
    ) -> Response:
        accepted = exchange.deadline - self._timeout
        timeout = headers.get(b"x-forecastle-timeout")
        if timeout is not None:
            exchange.deadline -= self._timeout - min(self._timeout, parse_timeout(timeout))
        check_declared(headers.get(b"content-length"), self._max_body)
        self._lateness.add(exchange)
        try:
            data = await read_body(exchange.receive, self._max_body)
            exchange.read = True
            model, version = target
            call = Call(id_, model, data, headers, accepted, exchange.deadline, version)
            future: asyncio.Future[Result] = exchange.loop.create_future()
            exchange.submitted(contract.submit(self._core, call, partial(_settle, future)))
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
            content_type = _checked(response.content_type)
            if len(self._content_types) < 1000:  # a hook may make up as many as it likes
                self._content_types[response.content_type] = content_type
        reply = [(b"content-type", content_type), (b"x-request-id", id_.encode("ascii"))]
        if response.headers:
            reply += [(name.encode("ascii"), value.encode("ascii")) for name, value in response.headers.items()]
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


def _checked(content_type: str) -> bytes:
    if _CONTENT_TYPE.fullmatch(content_type):
        return content_type.encode("ascii")
    raise BadOutput(f"output_fn returned a content type that no header can carry: {content_type[:100]!r}")


async def _send_and_close(status: int, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await linger(receive)
    await send({"type": "http.response.body", "body": b""})
