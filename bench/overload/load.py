"""An open load: requests come when they come, whether or not those before were answered, as users do."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PATIENCE = 3.0
"""Seconds after the last request came that answers are waited for."""


@dataclass(frozen=True)
class Outcome:
    """One request: seconds from when it was due to its answer, and whether that was a prediction."""

    seconds: float
    good: bool


@dataclass(frozen=True)
class Goodput:
    """What came of a load; rates in requests per second, ``p99`` of all answers and ``p50_other`` of the rest in ms.

    The rest are those that were told at once that there is no prediction: refusals and defaults.
    """

    offered: float
    good: float
    in_time: float
    p99: float
    p50_other: float


def arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Yield the seconds at which requests come: a Poisson process."""
    draw, at = random.Random(seed), 0.0
    while (at := at + draw.expovariate(rate)) < seconds:
        yield at


def judge(outcomes: list[Outcome | None], seconds: float, slo: float) -> Goodput:
    """Judge a load; None is a request that nobody has answered."""
    good = sum(outcome is not None and outcome.good and outcome.seconds <= slo for outcome in outcomes)
    known = sorted(outcome.seconds for outcome in outcomes if outcome is not None and outcome.good)
    known += [float("inf")] * sum(outcome is None for outcome in outcomes)
    other = sorted(outcome.seconds for outcome in outcomes if outcome is not None and not outcome.good)
    count = len(outcomes)
    return Goodput(
        offered=count / seconds,
        good=good / seconds,
        in_time=good / count,
        p99=1000 * known[int(0.99 * (len(known) - 1))] if known else float("nan"),
        p50_other=1000 * other[len(other) // 2] if other else float("nan"),
    )


def sustainable(found: list[Goodput]) -> float:
    """Return the largest goodput at which 99 of 100 requests were answered in time."""
    return max((each.good for each in found if each.in_time >= 0.99), default=0.0)


def run(
    port: int, request: Callable[[int], bytes], is_good: Callable[[bytes], bool], times: list[float]
) -> list[Outcome | None]:
    """Send requests at so many seconds from now, and return what came of each."""
    return asyncio.run(_run(port, request, is_good, times))


async def _run(
    port: int, request: Callable[[int], bytes], is_good: Callable[[bytes], bool], times: list[float]
) -> list[Outcome | None]:
    outcomes: list[Outcome | None] = [None] * len(times)
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    began = time.perf_counter() + 0.05

    async def one(number: int, due: float) -> None:
        writer = None
        try:
            reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(number))
            head = await reader.readuntil(b"\r\n\r\n")
            body = await _body(reader, head)
            outcomes[number] = Outcome(time.perf_counter() - due, head[9:12] == b"200" and is_good(body))
            idle.append((reader, writer))
            writer = None
        except (OSError, asyncio.IncompleteReadError):
            outcomes[number] = Outcome(time.perf_counter() - due, False)
        finally:
            if writer is not None:
                writer.close()

    tasks = []
    for number, at in enumerate(times):
        due = began + at
        left = due - time.perf_counter()
        if left > 0:
            await asyncio.sleep(left)
        tasks.append(asyncio.create_task(one(number, due)))
    _, late = await asyncio.wait(tasks, timeout=PATIENCE)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for _, writer in idle:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return outcomes


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return await reader.readexactly(int(line.partition(b":")[2]))
        if line == b"transfer-encoding: chunked":
            body = b""
            while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
            return body
    return b""
