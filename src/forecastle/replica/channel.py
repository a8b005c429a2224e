"""The replica's end of the socket: blocking frames in, frames out."""

from __future__ import annotations

import socket
from collections import deque
from io import BufferedReader
from typing import cast

from forecastle.replica.wire import PREFIX, Cancel, ToFrontend, ToReplica, WireError, decode_to_replica, frame, lengths

BUFFER = 256 << 10
JOIN_BELOW = 256 << 10
"""Payloads that sum to less are joined into one write; larger ones are written as they are, uncopied."""


class Channel:
    """Frames over one connected socket, from one thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._reader = cast(BufferedReader, connection.makefile("rb", buffering=BUFFER))
        self._early: deque[tuple[ToReplica, memoryview]] = deque()

    def receive(self) -> tuple[ToReplica, memoryview] | None:
        """Return the next frame's header and payload, or ``None`` when the other end has closed.

        Raises:
            WireError: the other end sent what is no frame.
        """
        return self._early.popleft() if self._early else self._read()

    def cancelled(self) -> list[Cancel]:
        """Return what was cancelled meanwhile, without waiting; other frames are kept for ``receive``."""
        found: list[Cancel] = []
        while self._waiting():
            frame_ = self._read()
            if frame_ is None:
                break
            if isinstance(frame_[0], Cancel):
                found.append(frame_[0])
            else:
                self._early.append(frame_)
        return found

    def _waiting(self) -> bool:
        self._socket.setblocking(False)
        try:
            return bool(self._reader.peek(1))
        except BlockingIOError:
            return False
        finally:
            self._socket.setblocking(True)

    def _read(self) -> tuple[ToReplica, memoryview] | None:
        prefix = self._reader.read(PREFIX.size)
        if not prefix:
            return None
        if len(prefix) < PREFIX.size:
            raise WireError("the connection ended inside a frame")
        header_length, payload_length = lengths(prefix)
        header = self._reader.read(header_length)
        payload = self._reader.read(payload_length)
        if len(header) < header_length or len(payload) < payload_length:
            raise WireError("the connection ended inside a frame")
        return decode_to_replica(header), memoryview(payload)

    def send(self, header: ToFrontend, payloads: list[bytes] | None = None) -> None:
        """Write one frame; returns when the kernel has taken it."""
        bodies = payloads or []
        total = sum(map(len, bodies))
        start = frame(header, total)
        if total < JOIN_BELOW:
            self._socket.sendall(b"".join([start, *bodies]))
            return
        self._socket.sendall(start)
        for body in bodies:
            self._socket.sendall(body)
