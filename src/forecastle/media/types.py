"""Content types and Accept: parsing them, and choosing what to answer with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header, parse_options_header

from forecastle.errors import NotAcceptable

JSON = "application/json"
CSV = "text/csv"
NPY = "application/x-npy"
NPZ = "application/x-npz"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"

_BARE_QUALITY = re.compile(r";\s*q=(?=\.)")


class MediaType(msgspec.Struct, frozen=True):
    """A parsed content type: ``type`` is ``a/b`` in lower case, ``params`` its parameters; do not change them."""

    type: str
    params: dict[str, str]


@lru_cache(256)
def parse(content_type: str) -> MediaType:
    """Parse a Content-Type header; an empty one is ``application/octet-stream``."""
    value, params = parse_options_header(content_type)
    return MediaType(value.lower() or BYTES, params)


@lru_cache(256)
def accept(header: str) -> MIMEAccept:
    """Parse an Accept header; an empty one, or one that cannot be read at all, accepts everything."""
    # Old Java writes a quality without its leading zero, which werkzeug would leave out with its range.
    return parse_accept_header(_BARE_QUALITY.sub(r"\g<0>0", header), MIMEAccept) or MIMEAccept([("*/*", 1)])


def negotiate(accept: MIMEAccept, offers: Sequence[str]) -> str:
    """Choose the offer that the client likes best; among equals the first.

    An offer's quality is that of the most specific range it matches (``a/b`` before ``a/*`` before ``*/*``), and 0
    excludes it. A range's ``charset`` is not looked at; its other parameters must be the offer's.

    Raises:
        NotAcceptable: no offer is accepted; the message lists both sides.
    """
    if not accept or accept[0] == ("*/*", 1):
        return offers[0]
    return _best(tuple(accept), tuple(offers))


@lru_cache(256)
def _best(ranges: tuple[tuple[str, float], ...], offers: tuple[str, ...]) -> str:
    qualities = [_quality(ranges, parse(offer)) for offer in offers]
    best = max(qualities)
    if best <= 0:
        raise NotAcceptable(
            f"the answer cannot be written as what the client accepts ({MIMEAccept(ranges).to_header()}); "
            f"it can be written as {', '.join(offers)}"
        )
    return offers[qualities.index(best)]


def _quality(ranges: Iterable[tuple[str, float]], offer: MediaType) -> float:
    # werkzeug keeps the ranges sorted, the most specific first.
    for text, quality in ranges:
        range_ = parse(text)
        main, _, sub = range_.type.partition("/")
        if range_.type not in {"*", "*/*", offer.type} and not (sub == "*" and offer.type.startswith(f"{main}/")):
            continue
        if all(name == "charset" or offer.params.get(name) == value for name, value in range_.params.items()):
            return quality
    return 0


def is_json(content_type: str) -> bool:
    """Say whether a content type is JSON: ``application/json``, ``text/json``, or one that ends in ``+json``."""
    type_ = parse(content_type).type
    return type_ in {JSON, "text/json"} or type_.endswith("+json")
