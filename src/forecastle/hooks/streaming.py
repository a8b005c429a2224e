"""Answers in pieces: what a hook yields goes out as it is made.

What yields may be ``predict_fn`` (its elements are written one by one, by the model's ``output_fn`` or by the default
here), ``output_fn`` or ``transform_fn`` (what they yield is the pieces: bytes or text), or the body in what those two
return. Server-sent events are framed for any of them when the client asks for ``text/event-stream``.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from werkzeug.datastructures import MIMEAccept

from forecastle import media
from forecastle.errors import BadOutput

EVENTS = "text/event-stream"
NDJSON = "application/x-ndjson"


class Stream(NamedTuple):
    """A body in pieces, none of which has been made yet but the first; each is at least one byte."""

    pieces: Iterator[bytes]
    content_type: str


def yields(function: Callable[..., Any]) -> bool:
    """Say whether a hook is a generator function; one that wraps it says so by an attribute of this name."""
    return inspect.isgeneratorfunction(function) or bool(getattr(function, "yields", False))


def is_stream(value: Any) -> bool:
    """Say whether a value is made while it is read."""
    return isinstance(value, Iterator)


def of_elements(elements: Iterator[Any], accept: MIMEAccept) -> Stream:
    """Write a prediction's elements: bytes as they are, text as text, others as lines of JSON, an array or events.

    Raises:
        NotAcceptable: the client accepts none of these.
        BadOutput: an element has no form in JSON.
    """
    begin = list(islice(elements, 1))
    first = begin[0] if begin else None
    everything = chain(begin, elements)
    if isinstance(first, bytes | bytearray | memoryview):
        offers: tuple[str, ...] = (media.BYTES, EVENTS)
    elif isinstance(first, str):
        offers = (media.TEXT, EVENTS)
    else:
        offers = (NDJSON, "application/jsonlines", media.JSON, EVENTS)
    content_type = media.negotiate(accept, offers)
    if content_type == EVENTS:
        return Stream(_events(map(_text, everything)), EVENTS)
    if content_type == media.JSON:
        return Stream(_array(everything), content_type)
    if content_type in {media.BYTES, media.TEXT}:
        return _started(map(_piece, everything), content_type)
    return Stream((_json(element) + b"\n" for element in everything), content_type)


def of_pieces(pieces: Iterable[Any], content_type: str | None, accept: MIMEAccept) -> Stream:
    """Send what a hook yields: bytes, text, or pairs of these and a content type, of which the first one's counts.

    Raises:
        BadOutput: a piece is something else.
    """
    found = iter(pieces)
    first = next(found, b"")
    if isinstance(first, tuple) and len(first) == 2:
        content_type = content_type or first[1]
    everything = map(_piece, chain([first], found))
    if content_type is None:
        content_type = media.TEXT if isinstance(first, str) else media.BYTES
    if accept.best == EVENTS and media.parse(content_type).type != EVENTS:
        return Stream(_events(everything), EVENTS)
    return _started(everything, content_type)


def _started(pieces: Iterator[bytes], content_type: str) -> Stream:
    """Leave out what is empty: a piece of no bytes would end a body in chunks."""
    return Stream((piece for piece in pieces if piece), content_type)


def _piece(value: Any) -> bytes:
    if isinstance(value, tuple) and len(value) == 2:
        value = value[0]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise BadOutput(f"a hook yielded {type(value).__name__}; expected bytes or text")


def _text(element: Any) -> bytes:
    return _piece(element) if isinstance(element, str | bytes | bytearray | memoryview) else _json(element)


def _json(element: Any) -> bytes:
    return media.encode(element, media.JSON)


def _array(elements: Iterator[Any]) -> Iterator[bytes]:
    before = b"["
    for element in elements:
        yield before + _json(element)
        before = b",\n"
    yield b"]" if before == b",\n" else b"[]"


def _events(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        lines = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        yield b"".join(b"data: %b\n" % line for line in lines) + b"\n"
