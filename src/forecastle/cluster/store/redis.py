"""A store in Redis: for servers of several machines that serve the same."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import RedisError, WatchError

from forecastle.cluster.desired import Desired
from forecastle.cluster.store.documents import FORMAT, Rows, from_rows, to_rows
from forecastle.errors import StoreFailed, UsageError

TIMEOUT = 5.0
"""Seconds after which Redis counts as not reachable, and within which a change must get its turn."""

RETRY_SECONDS = 0.5
"""How soon a broken connection is made anew to hear of changes."""

LISTEN_SECONDS = 5.0
"""How often a connection that hears nothing is tried."""


class RedisStore:
    """Keeps the state of a cluster under ``forecastle:CLUSTER:``. A change is told to every server that watches.

    A change is as durable as that Redis makes it: ``appendfsync always`` for what must outlive its sudden end.
    """

    def __init__(self, url: str, cluster: str) -> None:
        """Take a URL: ``redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]``, or ``rediss://`` for TLS.

        Raises:
            UsageError: it is none.
        """
        try:
            self._redis = Redis.from_url(
                url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, health_check_interval=30
            )
        except ValueError as error:
            raise UsageError(f"--store: {_without_password(url)} is no URL of a Redis: {error}") from None
        self._where = _without_password(url)
        prefix = f"forecastle:{cluster}:"
        self._documents, self._format = prefix + "documents", prefix + "format"
        self._states, self._channel = prefix + "states", prefix + "changes"
        self._listening: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[], None]] = []
        self.trouble = ""

    async def read(self) -> Desired:
        """Return the state."""
        async with self._told(), self._redis.pipeline(transaction=True) as pipeline:
            pipeline.get(self._format)
            pipeline.hgetall(self._documents)
            found, rows = await pipeline.execute()
            self._check(found)
            return from_rows(_rows(rows))

    async def change(self, edit: Callable[[Desired], Desired]) -> Desired:
        """Atomically replace the state by ``edit(state)``, and return it once Redis has it.

        ``edit`` is called again where another server's change came first.
        """
        end = time.monotonic() + TIMEOUT
        async with self._told(), self._redis.pipeline(transaction=True) as pipeline:
            while True:
                try:
                    return await self._change(pipeline, edit)
                except WatchError:  # noqa: PERF203
                    if time.monotonic() > end:
                        raise

    async def watch(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` soon after anyone has changed the state, or may have while this could not be heard."""
        self._watchers.append(changed)
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def load_state(self, application: str, user: str) -> bytes | None:
        """Return what a policy has learned."""
        async with self._told():
            found = await self._redis.hget(self._states, f"{application}/{user}")
            return found if isinstance(found, bytes) else None

    async def save_state(self, application: str, user: str, state: bytes | None) -> None:
        """Keep what a policy has learned; None to forget it."""
        async with self._told():
            if state is None:
                await self._redis.hdel(self._states, f"{application}/{user}")
            else:
                await self._redis.hset(self._states, f"{application}/{user}", state)

    async def forget_states(self, application: str) -> None:
        """Forget what an application's policy has learned."""
        async with self._told():
            names = [name async for name, _ in self._redis.hscan_iter(self._states, f"{application}/*")]
            if names:
                await self._redis.hdel(self._states, *names)

    async def close(self) -> None:
        """Hear of changes no more, and let go of the connections."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        with contextlib.suppress(RedisError, OSError):
            await self._redis.aclose()

    async def _change(self, pipeline: Pipeline, edit: Callable[[Desired], Desired]) -> Desired:
        await pipeline.watch(self._documents, self._format)
        self._check(await pipeline.get(self._format))
        before = _rows(await pipeline.hgetall(self._documents))
        state = edit(from_rows(before))
        after = to_rows(state)
        pipeline.multi()  # type: ignore[no-untyped-call]
        gone = [_field(key) for key in before if key not in after]
        new: dict[Any, Any] = {_field(key): document for key, document in after.items() if before.get(key) != document}
        if gone:
            pipeline.hdel(self._documents, *gone)
        if new:
            pipeline.hset(self._documents, mapping=new)
        pipeline.set(self._format, FORMAT)
        pipeline.publish(self._channel, b"")
        await pipeline.execute()
        return state

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError):
                async with self._redis.pubsub() as channel:
                    await channel.subscribe(self._channel)
                    while True:
                        # The first message says that it is subscribed: what came before that was not heard.
                        if await channel.get_message(timeout=LISTEN_SECONDS) is not None:
                            self._tell()
                        else:
                            await channel.ping()
            await asyncio.sleep(RETRY_SECONDS)

    def _tell(self) -> None:
        for changed in self._watchers:
            changed()

    def _check(self, found: bytes | str | None) -> None:
        if found is not None and not (found.isdigit() and int(found) <= FORMAT):
            later = f"a later version of Forecastle (its format is {found[:20]!r}, this one's {FORMAT})"
            raise StoreFailed(f"{self._where} is of {later}; start that version, or name another with --store")

    @contextlib.asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        """Tell why Redis could not do what was asked, in an error and in ``trouble``."""
        try:
            yield
        except (RedisError, OSError) as error:
            self.trouble = f"{self._where}: {error}"
            raise StoreFailed(f"the store cannot be used (--store): {self.trouble}") from None
        self.trouble = ""


def _field(key: tuple[str, str]) -> str:
    return "/".join(key)


def _rows(found: dict[Any, Any]) -> Rows:
    rows: Rows = {}
    for field, document in found.items():
        kind, _, name = field.decode(errors="replace").partition("/")
        rows[kind, name] = document
    return rows


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
