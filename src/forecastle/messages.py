"""Request, Part and Response: the values that travel from a contract to a replica and back.

They are bytes and short strings. No tensor is decoded outside a replica.
"""

from __future__ import annotations

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
    """One query to one model.

    ``deadline`` is monotonic (``time.monotonic()`` seconds), made once when the request is accepted. ``accept`` is the
    client's Accept header or ``*/*``.
    """

    id: str
    model: str
    parts: list[Part]
    accept: str
    deadline: float


class Response(msgspec.Struct, frozen=True, gc=False):
    """An answer as ``output_fn`` made it."""

    body: bytes
    content_type: str
