"""A reply in chunks: each piece of an answer goes out as it comes from the replica."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
from starlette.types import Receive, Send

from forecastle.errors import RequestError
from forecastle.http.errors import Headers
from forecastle.messages import Pieces

EVENTS = b"text/event-stream"


async def stream(headers: Headers, first: bytes, rest: Pieces, receive: Receive, send: Send) -> RequestError | None:
    """Send a reply whose body is made while it is sent; return why it is not whole, if it is not.

    A client that goes away ends the making of it. What fails on the way can have no status any more: server-sent
    events end with an event ``error``; the connection of any other reply closes before the chunk that would end it.
    """
    gone = asyncio.ensure_future(_follow_client(receive, rest))
    events = any(name == b"content-type" and value.startswith(EVENTS) for name, value in headers)
    if events:
        headers = [*headers, (b"cache-control", b"no-cache")]
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        piece: bytes | None = first
        while piece is not None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            piece = await rest.next()
    except RequestError as error:
        if gone.done():
            return None
        if events:
            told = msgspec.json.encode({"type": error.type, "message": error.message})
            await send({"type": "http.response.body", "body": b"event: error\ndata: %b\n\n" % told})
        return error
    else:
        await send({"type": "http.response.body", "body": b""})
        return None
    finally:
        rest.cancel()
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone


async def _follow_client(receive: Receive, rest: Pieces) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    rest.cancel()
