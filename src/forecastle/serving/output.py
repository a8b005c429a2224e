"""Answers as JSON: what several models' answers are compared in, and what an application's reply holds."""

from __future__ import annotations

import base64

import msgspec

from forecastle.errors import BadOutput
from forecastle.messages import Response

_skip = msgspec.json.Decoder(msgspec.Raw).decode


def as_json(response: Response) -> bytes:
    """Return an answer as one JSON value.

    JSON stays as it is, also where it comes as text (``1.0`` is a number then); other text becomes a string, and
    anything else the string of its base64.

    Raises:
        BadOutput: it is called JSON, or text, and is none; it comes in pieces; or its status says that it is none.
    """
    if response.status >= 400:
        raise BadOutput(f"the model answered with the status {response.status}")
    if response.rest is not None:
        raise BadOutput("the model answers in pieces, which an application cannot pass on; ask the model itself")
    body, kind = response.body, response.content_type
    if kind == "application/json" or _named(kind, "application/json"):
        value = _value(body)
        if value is None:
            raise BadOutput("the model calls its answer application/json, and it is none")
        return value
    if kind.startswith("text/"):
        return from_text(body)
    return msgspec.json.encode(base64.b64encode(body).decode("ascii"))


def from_text(text: bytes) -> bytes:
    """Return the JSON value that a text is, else the text as a JSON string.

    Raises:
        BadOutput: it is not UTF-8.
    """
    value = _value(text)
    if value is not None:
        return value
    try:
        return msgspec.json.encode(text.decode())
    except UnicodeDecodeError:
        raise BadOutput("the model calls its answer text, and it is not UTF-8") from None


def _value(body: bytes) -> bytes | None:
    """Return the one JSON value that ``body`` is, without the blanks around it, or None."""
    try:
        if not body.isascii():
            body.decode()  # strings are skipped unread below
        return bytes(_skip(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _named(content_type: str, name: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == name
