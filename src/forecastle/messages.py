"""Request, Part and Response: the values that travel from a contract to a replica and back.

They are bytes and short strings. No tensor is decoded outside a replica.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Part(msgspec.Struct, frozen=True, gc=False):
    """One named piece of a request's input.

    ``name`` is the form field of a multipart body, or ``""`` for a raw body. ``content_type`` is as the client sent it,
    parameters included, or ``""`` where it sent none.
    """

    name: str
    content_type: str
    data: bytes


class Request(msgspec.Struct):
    """One query to one model, to its current version unless it names a ``version``.

    ``deadline`` is monotonic (``time.monotonic()`` seconds), made once when the request is accepted. ``accept`` is the
    client's Accept header or ``*/*``. ``headers`` are those that hooks may see, by lower-case name.
    """

    id: str
    model: str
    parts: list[Part]
    accept: str
    deadline: float
    headers: dict[str, str] = {}
    version: str = ""


class Pieces(Protocol):
    """The rest of a body that is made while it is sent."""

    async def next(self) -> bytes | None:
        """Wait for the next piece; ``None`` after the last one.

        Raises:
            RequestError: there will be no more, and the body is not whole.
        """

    def cancel(self) -> None:
        """Say that nobody reads the rest; without effect once it is over."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """An answer as ``output_fn`` made it; ``headers`` are those that a hook answers with.

    With ``rest``, ``body`` is only the first piece. ``status`` is that of HTTP, which a handler may choose.
    """

    body: bytes
    content_type: str
    headers: dict[str, str] = {}
    rest: Pieces | None = None
    status: int = 200
