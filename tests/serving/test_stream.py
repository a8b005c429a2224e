from __future__ import annotations

import asyncio

import pytest

from forecastle.errors import PredictionFailed, RequestError
from forecastle.serving.stream import HIGH, Stream


class Source:
    def __init__(self) -> None:
        self.paused = 0
        self.cancelled: list[tuple[int, int]] = []

    def pause(self) -> None:
        self.paused += 1

    def resume(self) -> None:
        self.paused -= 1

    def cancel(self, batch: int, index: int) -> None:
        self.cancelled.append((batch, index))


def made() -> tuple[Source, Stream]:
    source = Source()
    return source, Stream(source, 4, 2)


async def read(stream: Stream) -> list[bytes]:
    pieces = []
    while (piece := await stream.next()) is not None:
        pieces.append(piece)
    return pieces


def test_pieces_come_in_order_whether_the_reader_waits_or_not() -> None:
    async def main() -> None:
        _, stream = made()
        stream.push(b"a")
        reading = asyncio.create_task(read(stream))
        await asyncio.sleep(0)
        stream.push(b"b")
        await asyncio.sleep(0)
        stream.push(b"c")
        stream.end()
        stream.push(b"late")
        assert await reading == [b"a", b"b", b"c"]

    asyncio.run(main())


def test_what_came_before_an_error_is_read_before_it() -> None:
    async def main() -> None:
        _, stream = made()
        stream.push(b"a")
        stream.end(PredictionFailed("broke"))
        stream.end()
        assert await stream.next() == b"a"
        with pytest.raises(PredictionFailed, match="broke"):
            await stream.next()

    asyncio.run(main())


def test_a_slow_reader_stops_the_source_until_half_is_read() -> None:
    async def main() -> None:
        source, stream = made()
        half = b"x" * (HIGH // 2)
        for _ in range(4):
            stream.push(half)
        assert source.paused == 1
        await stream.next()
        await stream.next()
        assert source.paused == 1
        await stream.next()
        assert source.paused == 0
        stream.push(half * 3)
        assert source.paused == 1
        stream.cancel()
        assert source.paused == 0

    asyncio.run(main())


def test_a_cancelled_stream_tells_the_replica_once_and_wakes_its_reader() -> None:
    async def main() -> None:
        source, stream = made()
        reading = asyncio.create_task(read(stream))
        await asyncio.sleep(0)
        stream.cancel()
        stream.cancel()
        assert source.cancelled == [(4, 2)]
        with pytest.raises(RequestError):
            await reading
        stream.end()

    asyncio.run(main())


def test_a_stream_that_is_whole_is_not_cancelled() -> None:
    source, stream = made()
    stream.end()
    stream.cancel()
    assert source.cancelled == []
