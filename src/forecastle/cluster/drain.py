"""Waiting until nothing is in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

POLL_SECONDS = 0.01


async def drained(idle: Callable[[], bool], seconds: float) -> None:
    """Wait until nothing is in flight any more, for so many seconds at most."""
    end = time.monotonic() + seconds
    # Looking now and then, in a call that is rare, costs less than a check on the path of every request.
    while not idle() and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)
