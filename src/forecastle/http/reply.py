"""What goes out for a request, and what must be known of the request for that."""

from __future__ import annotations

import re
from typing import NamedTuple

from forecastle.errors import BadOutput, RequestError
from forecastle.http.contract import Contract
from forecastle.http.core import Ticket
from forecastle.http.errors import Headers
from forecastle.messages import Pieces

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_CONTENT_TYPE = re.compile(r"[\x20-\x7e]{1,255}")


class Pending:
    """A request that is being answered: what its reply, its log lines and its counters need.

    ``instead`` is what it fails with whatever its result is.
    """

    __slots__ = ("contract", "id", "instead", "model", "path", "ticket")

    def __init__(self, contract: Contract, path: str, id_: str) -> None:
        self.contract = contract
        self.path = path
        self.id = id_
        self.model = ""
        self.ticket: Ticket | None = None
        self.instead: RequestError | None = None

    def cancel(self) -> None:
        """Await its result no more: it fails."""
        if self.ticket is not None:
            self.ticket.cancel()


class Reply(NamedTuple):
    """What goes out; with ``rest``, ``body`` is only its first piece."""

    status: int
    headers: Headers
    body: bytes
    rest: Pieces | None
    pending: Pending


def header(name: str, value: str) -> tuple[bytes, bytes]:
    """Return a header of an answer as it is sent.

    Raises:
        BadOutput: it cannot be.
    """
    if _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value):
        return name.encode("ascii"), value.encode("ascii")
    raise BadOutput(f"the answer has a header that cannot be sent: {name[:100]!r}: {value[:100]!r}")


def content_type_header(content_type: str) -> bytes:
    """Return a content type as it is sent.

    Raises:
        BadOutput: it cannot be.
    """
    if _CONTENT_TYPE.fullmatch(content_type):
        return content_type.encode("ascii")
    raise BadOutput(f"output_fn returned a content type that no header can carry: {content_type[:100]!r}")
