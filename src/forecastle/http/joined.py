"""One write for what is written in one turn of the loop.

An ASGI server writes a reply's head and its body apart, and each write is a system call: with the read, most of what a
small reply costs the kernel. Here they are joined, with the replies to other requests of the same connection.
"""

from __future__ import annotations

import asyncio
from typing import Any

HELD_AT_MOST = 64 << 10
"""Bytes that are held back at most; a large body goes to the transport at once, whose flow control then counts it."""


class JoinedWrites:
    """A transport that passes on what was written once the loop turns, or before anything else is asked of it."""

    __slots__ = ("_held", "_loop", "_size", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Hold the bytes back, for no longer than this turn of the loop."""
        held = self._held
        if not held:
            self._loop.call_soon(self._flush)
        held.append(data)
        self._size += len(data)
        if self._size > HELD_AT_MOST:
            self._flush()

    def is_closing(self) -> bool:
        """Say whether the transport closes; asked for every reply, so not by way of ``__getattr__``."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Write what is held, then close."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        held = self._held
        if held:
            self._held, self._size = [], 0
            self._transport.writelines(held)
