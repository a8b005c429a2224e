from __future__ import annotations

import asyncio
import sys
from functools import partial

import pytest
import redis as client

from cluster.harness import until
from cluster.store.servers import RedisServer
from cluster.store.test_store import register
from forecastle.cluster.store import open_store
from forecastle.errors import StoreFailed, UsageError


def test_clusters_in_one_redis_do_not_mix(redis: RedisServer) -> None:
    async def test() -> None:
        one, other = open_store(redis.url, "one"), open_store(redis.url, "other")
        await one.change(partial(register, name="app"))
        await one.save_state("app", "", b"1")
        assert (await other.read()).applications == {}
        assert await other.load_state("app", "") is None
        with client.Redis.from_url(redis.url) as raw:
            assert {key.partition(b":one:")[0] for key in raw.scan_iter()} == {b"forecastle"}
        await one.close()
        await other.close()

    asyncio.run(test())


def test_when_redis_goes_it_is_told_and_when_it_is_back_changes_are_heard_again(redis: RedisServer) -> None:
    async def test() -> None:
        store = open_store(redis.url)
        heard: list[int] = []
        await store.watch(lambda: heard.append(1))
        await store.change(partial(register, name="app"))
        await until(lambda: bool(heard))
        redis.kill()
        for call in (store.read, partial(store.change, partial(register, name="b"))):
            with pytest.raises(StoreFailed, match=r"--store.*redis://127\.0\.0\.1"):
                await call()
        assert store.trouble
        heard.clear()
        redis.start()
        await until(lambda: bool(heard))  # what may have changed meanwhile is looked at
        assert set((await store.read()).applications) == {"app"}
        assert not store.trouble
        await store.close()

    asyncio.run(test())


def test_a_password_is_never_told(redis: RedisServer) -> None:
    async def test() -> None:
        store = open_store(redis.url.replace("redis://", "redis://user:secret@"))
        with pytest.raises(StoreFailed) as caught:
            await store.read()
        assert "secret" not in caught.value.message + store.trouble
        await store.close()

    asyncio.run(test())


def test_a_layout_of_a_later_version_is_refused(redis: RedisServer) -> None:
    async def test() -> None:
        store = open_store(redis.url)
        await store.change(partial(register, name="app"))
        with client.Redis.from_url(redis.url) as raw:
            raw.set("forecastle:default:format", 2)
        with pytest.raises(StoreFailed, match="later version"):
            await store.change(partial(register, name="other"))
        with pytest.raises(StoreFailed, match="later version"):
            await store.read()
        await store.close()

    asyncio.run(test())


def test_without_its_package_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "forecastle.cluster.store.redis", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(UsageError, match=r"pip install 'forecastle\[redis\]'"):
        open_store("redis://localhost")
