"""Errors as replies: one table from error to status, one JSON shape, ``{"code", "type", "message", "request_id"}``."""

from __future__ import annotations

import math
from collections.abc import Collection

import msgspec

from forecastle.errors import MethodNotAllowed, RequestError

Headers = list[tuple[bytes, bytes]]

_NAMED_AT_MOST = 20


class ErrorBody(msgspec.Struct):
    """The JSON of every failed request; ``code`` repeats the status, ``type`` is the name of the error's class."""

    code: int
    type: str
    message: str
    request_id: str


class InternalError(RequestError):
    """A defect of the server itself. The client learns the request id, under which the log holds the traceback."""

    status = 500

    def __init__(self) -> None:
        super().__init__("the server failed on this request; its log tells why under this request id")


def error_reply(error: RequestError, request_id: str) -> tuple[int, Headers, bytes]:
    """Return status, headers and body of the reply to a request that failed with ``error``."""
    body = msgspec.json.encode(ErrorBody(error.status, error.type, error.message, request_id))
    return error.status, error_headers(error, request_id, len(body)), body


def error_headers(error: RequestError, request_id: str, length: int) -> Headers:
    """Return the headers of such a reply, whose body is so many bytes of JSON."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % length),
        (b"x-request-id", request_id.encode("ascii")),
    ]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.retry_after))))
    if isinstance(error, MethodNotAllowed) and error.allowed:
        headers.append((b"allow", error.allowed.encode("ascii")))
    return headers


def named(names: Collection[str]) -> str:
    """``a, b and c``: the names in order, for a sentence; a long list ends with how many more there are."""
    first = sorted(names)
    rest = len(first) - _NAMED_AT_MOST
    if rest > 0:
        first = [*first[:_NAMED_AT_MOST], f"{rest} more"]
    return " and ".join([", ".join(first[:-1]), first[-1]] if len(first) > 1 else first)


def shortened(text: str, limit: int = 100) -> str:
    """``text``, cut where it is too long to repeat in a message."""
    return text if len(text) <= limit else text[:limit] + "…"
