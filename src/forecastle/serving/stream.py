"""The rest of an answer on its way from a replica to its client, with as little of it in between as need be."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from forecastle.errors import RequestError

HIGH = 1 << 20
"""Bytes that may wait for a slow client; then the replica is read no more, and so makes no more."""


class Source(Protocol):
    """The connection that the pieces come from."""

    def pause(self) -> None:
        """Read nothing more for now; each call needs its ``resume``."""

    def resume(self) -> None:
        """Read on, once every ``pause`` has been taken back."""

    def cancel(self, batch: int, index: int) -> None:
        """Tell the replica that nobody reads this body any more."""


class Stream:
    """Pieces that have arrived and were not read yet; see ``messages.Pieces``. ``deadline`` is monotonic."""

    __slots__ = ("_batch", "_error", "_held", "_index", "_over", "_paused", "_pieces", "_source", "_waiter", "deadline")

    def __init__(self, source: Source, batch: int, index: int) -> None:
        self.deadline = 0.0
        self._source = source
        self._batch = batch
        self._index = index
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._paused = False
        self._over = False
        self._error: RequestError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def over(self) -> bool:
        """Whether no piece will come any more."""
        return self._over

    def push(self, piece: bytes) -> None:
        """Take the next piece; after the end it is dropped."""
        if self._over:
            return
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > HIGH and not self._paused:
            self._paused = True
            self._source.pause()
        self._wake()

    def end(self, error: RequestError | None = None) -> None:
        """The body is whole, or it never will be; the first call counts."""
        if not self._over:
            self._over, self._error = True, error
            self._wake()

    def stop(self, error: RequestError) -> None:
        """End it for a reason of ours: the replica is told to make no more, and what waits is dropped."""
        if not self._over:
            self._pieces.clear()
            self._held = 0
            self._read_on()
            self._source.cancel(self._batch, self._index)
            self.end(error)

    def cancel(self) -> None:
        """Nobody reads the rest."""
        self.stop(RequestError("the client has gone"))

    async def next(self) -> bytes | None:
        """Wait for the next piece; ``None`` after the last one.

        Raises:
            RequestError: there will be no more, and the body is not whole.
        """
        while not self._pieces:
            if self._over:
                if self._error is not None:
                    raise self._error
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        piece = self._pieces.popleft()
        self._held -= len(piece)
        if self._held <= HIGH // 2:
            self._read_on()
        return piece

    def _read_on(self) -> None:
        if self._paused:
            self._paused = False
            self._source.resume()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
