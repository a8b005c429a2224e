"""One HTTP request at a time, as a platform sends it: the standard library's client, which smooths nothing over."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

HEADERS = {
    "X-Amzn-SageMaker-Custom-Attributes": "trace=7; tier=gold",
    "X-Amzn-SageMaker-Inference-Id": "check-0001",
    "X-Amzn-SageMaker-Session-Id": "session-1",
    "X-Amzn-SageMaker-Target-Variant": "AllTraffic",
    "X-Amzn-SageMaker-Enable-Explanations": "`false`",
}
"""Headers that the platform lets through to a container."""


class NoAnswer(Exception):
    """No reply came; the text says what happened instead."""


class Answer(NamedTuple):
    """A reply. ``pieces`` is how many reads its body came in, ``first`` and ``last`` when these were, in seconds."""

    status: int
    headers: dict[str, str]
    body: bytes
    pieces: int
    first: float
    last: float

    @property
    def content_type(self) -> str:
        """The type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def request(
    url: str,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    timeout: float = 60.0,
) -> Answer:
    """Send one request on a connection of its own, and read the whole reply.

    Raises:
        NoAnswer: the connection failed, was closed before the reply was whole, or nothing came in time.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout)
    began = time.monotonic()
    try:
        # Refused before it was all sent: the reply says why, if the server lets us read it.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, parts.path.rstrip("/") + path, body=body, headers=dict(headers or {}))
        reply = connection.getresponse()
        pieces = []
        first = last = 0.0
        while piece := reply.read1(65536):
            last = time.monotonic() - began
            first = first or last
            pieces.append(piece)
        found = {name.lower(): value for name, value in reply.getheaders()}
        return Answer(reply.status, found, b"".join(pieces), len(pieces), first, last)
    except TimeoutError:
        raise NoAnswer(f"no answer within {timeout:g} s") from None
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"no answer: {type(error).__name__} {error}".rstrip()) from None
    finally:
        connection.close()
