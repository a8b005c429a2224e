"""An open load: requests come when they come, whether or not those before were answered, as users do."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

PATIENCE = 3.0
"""Seconds after the last request came that answers are waited for."""

SETTLE_SECONDS = 30.0
"""How long a server may take to be done with what it was asked, once nothing more comes."""

IN_TIME = 0.99
"""The share of requests that are answered in time where a load is sustained: the 99th percentile is in time."""


Kind = Literal["good", "default", "refused", "failed"]
"""A prediction, a default output, a 503 that says when to come again, or anything else."""


@dataclass(frozen=True)
class Outcome:
    """One request: seconds from when it was due to its answer, what that was, and how late the request was sent."""

    seconds: float
    kind: Kind
    lag: float = 0.0


@dataclass(frozen=True)
class Goodput:
    """What came of a load; rates in requests per second, times in milliseconds, None where there is none.

    ``p99`` is that of predictions and of requests without an answer; ``p50_other`` and ``p99_other`` those of all other
    answers, of which some are ``defaults`` and some ``refused``. ``failed`` is the rest, unanswered ones included.
    ``lag`` is the 99th percentile of how late the load itself was.
    """

    offered: float
    good: float
    in_time: float
    p99: float | None = None
    p50_other: float | None = None
    p99_other: float | None = None
    defaults: float = 0.0
    refused: float = 0.0
    failed: float = 0.0
    lag: float = 0.0


def arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Yield the seconds at which requests come: a Poisson process."""
    draw, at = random.Random(seed), 0.0
    while (at := at + draw.expovariate(rate)) < seconds:
        yield at


def judge(times: list[float], outcomes: list[Outcome | None], begin: float, end: float, slo: float) -> Goodput:
    """Judge a load between two instants of it; None is a request that nobody has answered.

    Goodput is what was answered between them, so that neither a queue that fills at first nor one that is worked off
    after the last request counts. All else is about the requests that were due between them.
    """
    seconds = end - begin
    both = list(zip(times, outcomes, strict=True))
    good = [(at, each.seconds) for at, each in both if each and each.kind == "good" and each.seconds <= slo]
    asked = [outcome for at, outcome in both if begin <= at < end]
    known = [outcome for outcome in asked if outcome is not None]
    unanswered = len(asked) - len(known)
    kinds = Counter(outcome.kind for outcome in known)
    predicted = [outcome.seconds for outcome in known if outcome.kind == "good"] + [math.inf] * unanswered
    other = [outcome.seconds for outcome in known if outcome.kind != "good"]
    return Goodput(
        offered=len(asked) / seconds,
        good=sum(begin <= at + took < end for at, took in good) / seconds,
        in_time=sum(begin <= at < end for at, _ in good) / max(1, len(asked)),
        p99=_milliseconds(predicted, 0.99),
        p50_other=_milliseconds(other, 0.5),
        p99_other=_milliseconds(other, 0.99),
        defaults=kinds["default"] / seconds,
        refused=kinds["refused"] / seconds,
        failed=(kinds["failed"] + unanswered) / seconds,
        lag=_milliseconds([outcome.lag for outcome in known], 0.99) or 0.0,
    )


def _milliseconds(seconds: list[float], share: float) -> float | None:
    """Return a percentile; None where there is none, or where it was never answered."""
    found = 1000 * sorted(seconds)[int(share * (len(seconds) - 1))] if seconds else math.inf
    return found if found < math.inf else None


def sustainable(found: list[Goodput]) -> Goodput | None:
    """Return the point of the highest load of which 99 of 100 requests were answered in time."""
    return max((each for each in found if each.in_time >= IN_TIME), key=lambda each: each.offered, default=None)


def between(found: list[Goodput]) -> tuple[float, float] | None:
    """Return the highest load that was sustained, and the lowest one above it that was not."""
    most = sustainable(found)
    above = [each.offered for each in found if most is not None and each.offered > most.offered]
    return (most.offered, min(above)) if most is not None and above else None


def settled(port: int, request: Callable[[int], bytes], is_good: Callable[[bytes], bool], slo: float) -> bool:
    """Wait until a server is done with what it was asked, so that no load suffers from the one before."""
    end = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < end:
        outcomes = run(port, request, is_good, [0.0, 0.05, 0.1, 0.15, 0.2])
        if all(each is not None and each.kind == "good" and each.seconds <= slo / 2 for each in outcomes):
            return True
    return False


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
        lag = max(0.0, time.perf_counter() - due)
        try:
            reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(number))
            head = await reader.readuntil(b"\r\n\r\n")
            body = await _body(reader, head)
            outcomes[number] = Outcome(time.perf_counter() - due, _kind(head, body, is_good), lag)
            idle.append((reader, writer))
            writer = None
        except (OSError, asyncio.IncompleteReadError):
            outcomes[number] = Outcome(time.perf_counter() - due, "failed", lag)
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


def _kind(head: bytes, body: bytes, is_good: Callable[[bytes], bool]) -> Kind:
    status = head[9:12]
    if status == b"200":
        return "good" if is_good(body) else "default"
    return "refused" if status == b"503" and b"\r\nretry-after:" in head.lower() else "failed"


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
