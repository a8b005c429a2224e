"""What is late is found once, what is over is not."""

from __future__ import annotations

import asyncio

from forecastle.http.lateness import Lateness


class Item:
    def __init__(self) -> None:
        self.calls = 0
        self.found = asyncio.Event()

    def late(self) -> None:
        self.calls += 1
        self.found.set()


def test_only_what_is_still_there_is_late_and_only_once() -> None:
    async def main() -> None:
        lateness = Lateness(tick=0.001)
        over, stays, next_one = Item(), Item(), Item()
        lateness.add(over)
        lateness.add(stays)
        lateness.discard(over)
        await stays.found.wait()
        lateness.add(next_one)
        await next_one.found.wait()
        assert (over.calls, stays.calls, next_one.calls) == (0, 1, 1)

    asyncio.run(main())


def test_an_item_may_wait_again() -> None:
    async def main() -> None:
        lateness = Lateness(tick=0.001)
        item = Item()
        for _ in range(2):
            item.found.clear()
            lateness.add(item)
            await item.found.wait()
        assert item.calls == 2

    asyncio.run(main())


def test_discarding_what_is_not_there_is_nothing() -> None:
    Lateness().discard(Item())
