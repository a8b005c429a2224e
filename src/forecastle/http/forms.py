"""Forms: multipart/form-data (RFC 7578) and application/x-www-form-urlencoded, split into parts.

A part's content type is its own, or ``""`` where the client gave it none.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder

from forecastle.errors import BadInput
from forecastle.messages import Part

MULTIPART = "multipart/form-data"
URLENCODED = "application/x-www-form-urlencoded"

MAX_PARTS = 1000
"""A form has at most this many fields: more than any model has inputs."""

_MAX_BOUNDARY = 70  # RFC 2046, 5.1.1


def split_multipart(body: bytes, content_type: str) -> list[Part]:
    """Return the fields and files of a multipart body in their order.

    Raises:
        BadInput: no usable boundary, no part, too many, one without a name, or a body that ends in the midst of one.
    """
    boundary = parse_options_header(content_type)[1].get("boundary", "")
    if not 1 <= len(boundary) <= _MAX_BOUNDARY or not boundary.isascii():
        raise BadInput(
            f"the Content-Type {MULTIPART} needs a boundary of 1 to {_MAX_BOUNDARY} ASCII characters, "
            "which clients add by themselves: leave the header to them"
        )
    decoder = MultipartDecoder(boundary.encode("ascii"), max_parts=MAX_PARTS)
    decoder.receive_data(body)
    decoder.receive_data(None)
    try:
        parts = _parts(decoder)
    except RequestEntityTooLarge:
        raise _too_many() from None
    except ValueError:  # of the decoder: a broken header, or no boundary where one must be
        raise BadInput(
            "the multipart body is malformed or cut short: its boundary or a part's header is wrong"
        ) from None
    if not parts:
        raise BadInput("the multipart body holds no part: send one for each input, named after it")
    return parts


def _parts(decoder: MultipartDecoder) -> list[Part]:
    parts: list[Part] = []
    name = content_type = ""
    pieces: list[bytes] = []
    event = decoder.next_event()
    while not isinstance(event, Epilogue):
        if isinstance(event, Field | File):
            if event.name is None:
                raise BadInput(f"part {len(parts) + 1} of the multipart body has no name: name it after an input")
            name, content_type, pieces = event.name, event.headers.get("content-type", ""), []
        elif isinstance(event, Data):
            pieces.append(event.data)
            if not event.more_data:
                parts.append(Part(name, content_type, pieces[0] if len(pieces) == 1 else b"".join(pieces)))
        event = decoder.next_event()
    return parts


def split_urlencoded(body: bytes) -> list[Part]:
    """Return the fields of an urlencoded body in their order; a field without ``=`` is empty.

    Raises:
        BadInput: too many fields, or a name that is not UTF-8.
    """
    if body.count(b"&") >= MAX_PARTS:
        raise _too_many()
    parts = []
    for field in filter(None, body.replace(b"+", b" ").split(b"&")):
        name, _, value = field.partition(b"=")
        try:
            parts.append(Part(unquote_to_bytes(name).decode(), "", unquote_to_bytes(value)))
        except UnicodeDecodeError:
            raise BadInput(f"the name of field {len(parts) + 1} of the form is not UTF-8") from None
    return parts


def _too_many() -> BadInput:
    return BadInput(f"the form has more than {MAX_PARTS} fields: send one for each input of the model")
