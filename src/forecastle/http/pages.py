"""Everything that is not a prediction: a Starlette application with our error shape, request ids and counters."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forecastle.errors import ForeignPage, MethodNotAllowed, NotFound, RequestError
from forecastle.http.errors import InternalError, error_reply, named, shortened
from forecastle.http.request_id import request_id
from forecastle.http.stats import HttpStats

log = logging.getLogger(__name__)

OTHER = "other"
"""The route under which all paths are counted that no route has."""


_READING = {"GET", "HEAD", "OPTIONS"}


class Pages:
    """Serves ``routes``; ``elsewhere`` are paths that are served too, for the message of a 404.

    With ``guarded``, what a web page asks changes nothing: a page of any site can send requests to this machine's own
    address, and a model that it would register is code that we would run.
    """

    def __init__(
        self, routes: Sequence[Route], stats: HttpStats, elsewhere: Sequence[str] = (), *, guarded: bool = False
    ) -> None:
        self._guarded = guarded
        self._stats = stats
        self._routes = tuple(routes)
        self._paths = frozenset(route.path for route in routes)
        self._served = named({*self._paths, *elsewhere})
        self._app: ASGIApp = Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._no_route, RequestError: self._failed, Exception: self._defect},
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with its id in a header, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id_ = request_id(dict(scope["headers"]).get(b"x-request-id"))
        route = scope["path"] if scope["path"] in self._paths else OTHER
        scope["forecastle.id"] = id_
        scope["forecastle.route"] = route

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._stats.count(route, "", message["status"])
                given = [pair for pair in message["headers"] if pair[0] != b"x-request-id"]
                message = {**message, "headers": [*given, (b"x-request-id", id_.encode("ascii"))]}
            await send(message)

        if self._guarded and scope["method"] not in _READING and b"origin" in dict(scope["headers"]):
            refusal = ForeignPage("this port changes nothing for a web page (the request has an Origin header)")
            await self._error(Request(scope), refusal)(scope, receive, send_with_id)
            return
        with contextlib.suppress(Exception):  # Starlette raises again what _defect has logged and answered
            await self._app(scope, receive, send_with_id)

    async def _no_route(self, request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        path = shortened(request.url.path)
        if exc.status_code == 405:
            allowed = ", ".join(sorted(self._methods(request.scope)))
            message = f"{path} takes {allowed}, this was {shortened(request.method)}"
            return self._error(request, MethodNotAllowed(message, allowed=allowed))
        return self._error(request, NotFound(f"nothing is served at {path}: there are {self._served}"))

    def _methods(self, scope: Scope) -> set[str]:
        """Return the methods of every route that has the path; Starlette itself tells those of one."""
        there = [route for route in self._routes if route.matches(scope)[0] is not Match.NONE]
        return {method for route in there for method in route.methods or ()}

    async def _failed(self, request: Request, exc: Exception) -> Response:
        assert isinstance(exc, RequestError)
        return self._error(request, exc)

    async def _defect(self, request: Request, exc: Exception) -> Response:
        id_ = request.scope["forecastle.id"]
        log.error("request %s to %s failed inside the server", id_, request.url.path, exc_info=exc)
        return self._error(request, InternalError())

    def _error(self, request: Request, error: RequestError) -> Response:
        self._stats.count_error(request.scope["forecastle.route"], error.type)
        status, headers, body = error_reply(error, request.scope["forecastle.id"])
        response = Response(body, status)
        response.raw_headers = headers
        return response
