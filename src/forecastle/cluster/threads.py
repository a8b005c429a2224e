"""Work that blocks, in a thread that nothing waits for: neither a cancelled caller nor the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Do the work in a thread of its own, and return or raise what comes of it.

    Who cancels this need not wait for a download: the thread ends with its work, or with the process.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value: T | None = None
        error: Exception | None = None
        try:
            value = work()
        except Exception as raised:  # noqa: BLE001 -- raised again where the result is awaited
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the wish to know
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name="work", daemon=True).start()
    return await result
