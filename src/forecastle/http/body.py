"""Reading a request's body, and refusing one that is too large without reading it all."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import Message, Receive

from forecastle.errors import Cancelled, PayloadTooLarge

# How long a refused client may go on sending before the connection closes under it. Closing at once would reset the
# connection, and the client would lose the reply that tells it why.
_LINGER_SECONDS = 2.0


def too_large(size: str, limit: int) -> PayloadTooLarge:
    """The error for a body over the limit; ``size`` says how large it is, as far as that is known."""
    return PayloadTooLarge(f"the body is {size}, the limit is {limit} bytes: send less, or raise it with --max-body")


def check_declared(length: bytes | None, limit: int) -> None:
    """Refuse a body by its Content-Length, before any of it is read.

    Raises:
        PayloadTooLarge: more than ``limit`` bytes are announced.
    """
    if length is not None and int(length) > limit:
        raise too_large(f"{int(length)} bytes", limit)


async def read_body(receive: Receive, limit: int) -> bytes:
    """Read the whole body; one that came in one piece is not copied.

    Raises:
        PayloadTooLarge: it grew over ``limit`` bytes; what follows was not read.
        Cancelled: the client went away before its end.
    """
    message = await receive()
    first: bytes = _piece(message)
    if not message.get("more_body"):
        if len(first) > limit:
            raise too_large(f"{len(first)} bytes", limit)
        return first
    pieces = [first]
    size = len(first)
    while message.get("more_body"):
        if size > limit:
            raise too_large(f"more than {limit} bytes", limit)
        message = await receive()
        pieces.append(_piece(message))
        size += len(pieces[-1])
    if size > limit:
        raise too_large(f"{size} bytes", limit)
    return b"".join(pieces)


def _piece(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise Cancelled("the client closed the connection before the end of its body")
    body: bytes = message.get("body", b"")
    return body


async def linger(receive: Receive) -> None:
    """Discard what a refused client still sends, until it stops, goes, or two seconds have passed."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_discard(receive), _LINGER_SECONDS)


async def _discard(receive: Receive) -> None:
    while (await receive()).get("more_body"):
        pass
