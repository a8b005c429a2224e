from __future__ import annotations

import asyncio
import sqlite3
import stat
from functools import partial
from pathlib import Path

import pytest

from cluster.store.test_store import register
from forecastle.cluster.store.documents import FORMAT
from forecastle.cluster.store.sqlite import SqliteStore
from forecastle.errors import StoreFailed


def test_the_file_is_made_by_the_first_change_and_for_its_owner_alone(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "clusters" / "c" / "state.db"
        store = SqliteStore(path)
        assert (await store.read()).applications == {}
        assert await store.load_state("a", "") is None
        assert not path.exists()
        await store.change(partial(register, name="app"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    asyncio.run(test())


def test_a_file_of_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    before = path.read_bytes()
    store = SqliteStore(path)
    for call in (store.read, partial(store.change, partial(register, name="app"))):
        with pytest.raises(StoreFailed, match=r"later version of Forecastle \(its format is 2, this one's 1\)"):
            asyncio.run(call())
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_file_that_is_damaged_or_none_of_ours_is_told_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    store = SqliteStore(path)
    for call in (store.read, partial(store.change, partial(register, name="app"))):
        with pytest.raises(StoreFailed, match=r"--store.*state\.db"):
            asyncio.run(call())
    assert path.read_bytes() == content
    assert "state.db" in store.trouble


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = SqliteStore(tmp_path / "file" / "state.db")
    with pytest.raises(StoreFailed, match="--store"):
        asyncio.run(store.change(partial(register, name="app")))
