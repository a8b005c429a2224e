"""What every store must do; those that outlive a process, and are shared, do more."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from functools import partial

import msgspec
import pytest

from cluster.harness import until
from forecastle.cluster import desired
from forecastle.cluster.desired import Application, Desired
from forecastle.cluster.specs import ModelSpec
from forecastle.cluster.store import open_store
from forecastle.cluster.store.store import Store
from forecastle.errors import Conflict, StoreFailed, UsageError

SPAWN = multiprocessing.get_context("spawn")


def application(name: str) -> Application:
    return Application(name, "doubles", "-1", 20_000, policy="exp3", policy_options={"rate": 0.1})


def register(state: Desired, name: str) -> Desired:
    return desired.register(state, application(name))


def deploy(state: Desired, name: str, version: str) -> Desired:
    return desired.add_model(state, ModelSpec(name, "/m.py", version, labels=("a", "b")), current=True)


async def full(store: Store) -> Desired:
    """Put something of everything into a store."""
    await store.change(partial(register, name="app"))
    for version in ("2", "10", "1"):
        await store.change(partial(deploy, name="m", version=version))
    await store.change(partial(desired.link, name="app", models=("m",)))
    await store.change(partial(desired.use_version, name="m", version="10"))
    return await store.change(partial(desired.scale, name="m", version="10", replicas=3))


def test_what_was_changed_is_read_in_the_order_it_came(where: str) -> None:
    async def test() -> None:
        store = open_store(where)
        state = await full(store)
        assert await store.read() == state
        assert list(state.models["m"]) == list((await store.read()).models["m"]) == ["2", "10", "1"]
        assert state.application("app").models == ("m",)
        assert state.model("m").replicas == 3
        await store.close()

    asyncio.run(test())


def test_a_change_that_is_refused_changes_nothing(where: str) -> None:
    async def test() -> None:
        store = open_store(where)
        before = await full(store)
        with pytest.raises(Conflict):
            await store.change(partial(register, name="app"))
        assert await store.read() == before
        await store.change(partial(register, name="other"))
        await store.close()

    asyncio.run(test())


def test_what_a_policy_has_learned_is_kept_by_application_and_user(where: str) -> None:
    async def test() -> None:
        store = open_store(where)
        assert await store.load_state("a", "") is None
        await store.save_state("a", "", b"1")
        await store.save_state("a", "0", b"2")
        await store.save_state("ab", "", b"3")
        await store.save_state("a", "", b"4")
        await store.save_state("a", "0", None)
        assert [await store.load_state(*key) for key in (("a", ""), ("a", "0"), ("ab", ""))] == [b"4", None, b"3"]
        await store.forget_states("a")
        assert [await store.load_state(*key) for key in (("a", ""), ("ab", ""))] == [None, b"3"]
        await store.close()

    asyncio.run(test())


def test_changes_at_once_are_all_made(where: str) -> None:
    async def test() -> None:
        store = open_store(where)
        await asyncio.gather(*(store.change(partial(register, name=f"app{i}")) for i in range(20)))
        assert len((await store.read()).applications) == 20
        await store.close()

    asyncio.run(test())


def test_a_store_that_is_opened_anew_has_everything(url: str) -> None:
    async def test() -> None:
        store = open_store(url)
        state = await full(store)
        await store.save_state("app", "", b"learned")
        await store.close()
        again = open_store(url)
        assert await again.read() == state
        assert await again.load_state("app", "") == b"learned"
        await again.close()

    asyncio.run(test())


def test_another_server_hears_of_a_change(url: str) -> None:
    async def test() -> None:
        one, other = open_store(url), open_store(url)
        heard: list[str] = []
        await one.watch(lambda: heard.append("one"))
        await other.watch(lambda: heard.append("other"))
        await until(lambda: url.startswith("/") or len(heard) >= 2)  # Redis tells when it is listened to
        heard.clear()
        await one.change(partial(register, name="app"))
        await until(lambda: {"one", "other"} <= set(heard))
        assert "app" in (await other.read()).applications
        await one.close()
        await other.close()

    asyncio.run(test())


def add(url: str, start: int, count: int) -> None:
    """Register applications from a process of its own."""

    async def main() -> None:
        store = open_store(url)
        for i in range(start, start + count):
            await store.change(partial(register, name=f"app{i}"))
        await store.close()

    asyncio.run(main())


def test_changes_of_several_processes_at_once_are_all_made(url: str) -> None:
    processes = [SPAWN.Process(target=add, args=(url, 100 * i, 25)) for i in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    state = asyncio.run(_read(url))
    assert len(state.applications) == 100


def flip(url: str) -> None:
    """Register and unregister two applications together, without end."""

    def edit(state: Desired) -> Desired:
        for name in ("left", "right"):
            state = desired.unregister(state, name) if name in state.applications else register(state, name)
        return state

    async def main() -> None:
        store = open_store(url)
        while True:
            await store.change(edit)

    asyncio.run(main())


@pytest.mark.parametrize("moment", range(4))
def test_a_process_that_is_killed_leaves_the_state_before_a_change_or_after_it(url: str, moment: int) -> None:
    process = SPAWN.Process(target=flip, args=(url,))
    process.start()

    async def test() -> None:
        store = open_store(url)
        seen: list[int] = []
        await store.watch(lambda: seen.append(1))
        await until(lambda: len(seen) > moment)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert set((await store.read()).applications) in (set(), {"left", "right"})
        await store.change(partial(register, name="other"))
        assert "other" in (await store.read()).applications
        await store.close()

    asyncio.run(test())


async def _read(url: str, cluster: str = "default") -> Desired:
    store = open_store(url, cluster)
    try:
        return await store.read()
    finally:
        await store.close()


@pytest.mark.parametrize("url", ["http://x", "postgres://x/y", "redis://host:port/0"])
def test_a_url_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--store"):
        open_store(url)


def test_what_a_later_version_has_added_to_a_document_is_no_harm() -> None:
    from forecastle.cluster.store.documents import from_rows, to_rows

    rows = to_rows(register(Desired(), "app"))
    document = msgspec.json.decode(rows["application", "app"])
    rows["application", "app"] = msgspec.json.encode({**document, "later": 1})
    assert from_rows(rows) == register(Desired(), "app")
    rows["application", "app"] = b'{"name": 1}'
    with pytest.raises(StoreFailed, match="cannot be read"):
        from_rows(rows)
