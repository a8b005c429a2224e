"""How a wire contract puts predictions into HTTP: what its module gives to ``predict``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from starlette.types import Scope

from forecastle.errors import MethodNotAllowed, RequestError
from forecastle.http.core import Core, Ticket
from forecastle.http.errors import Headers, error_reply
from forecastle.messages import Part, Request, Response
from forecastle.serving.ticket import Done

RequestHeaders = Mapping[bytes, bytes]
"""By lower-case name; what came several times is joined by commas."""


class Call(NamedTuple):
    """An HTTP request whose body is there; ``accepted`` and ``deadline`` are monotonic seconds.

    ``version`` is empty for the model's current one.
    """

    id: str
    model: str
    body: bytes
    headers: RequestHeaders
    accepted: float
    deadline: float
    version: str = ""


class Contract(NamedTuple):
    """One wire contract.

    ``route`` is its template in the route table. ``model`` names what is asked, and raises what makes the request none
    for this contract; ``submit`` puts it to the core, or raises ``BadInput``; ``body`` makes the reply's body of an
    answer, ``fail`` the reply to a request that failed. Where the path may name a version of the model, ``version``
    returns it.
    """

    route: str
    model: Callable[[Core, Scope, RequestHeaders], str]
    submit: Callable[[Core, Call, Done], Ticket]
    body: Callable[[Response], bytes]
    fail: Callable[[RequestError, str], tuple[int, Headers, bytes]] = error_reply
    version: Callable[[Scope], str] | None = None


def one(parts: Callable[[bytes, str], list[Part]]) -> Callable[[Core, Call, Done], Ticket]:
    """Return a ``submit`` that makes one request of a body; ``parts`` cuts it up by its content type."""

    def submit(core: Core, call: Call, done: Done) -> Ticket:
        headers = call.headers
        request = Request(
            call.id,
            call.model,
            parts(call.body, headers.get(b"content-type", b"").decode("latin-1")),
            headers.get(b"accept", b"").decode("latin-1") or "*/*",
            call.deadline,
            {key.decode("latin-1"): value.decode("latin-1") for key, value in headers.items() if key[:2] == b"x-"},
            call.version,
        )
        return core.submit(request, done)

    return submit


def require_post(scope: Scope) -> None:
    """Refuse another method on a path that exists.

    Raises:
        MethodNotAllowed: the method is not POST.
    """
    require(scope, "POST")


def require(scope: Scope, *methods: str) -> None:
    """Refuse a method that is none of these on a path that exists.

    Raises:
        MethodNotAllowed: the method is another one.
    """
    if scope["method"] not in methods:
        allowed = ", ".join(methods)
        raise MethodNotAllowed(f"{scope['path']} takes {allowed}, this was {scope['method']}", allowed=allowed)
