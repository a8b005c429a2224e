"""A store in one SQLite file: the default, for the servers of one machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from forecastle.cluster.desired import Desired
from forecastle.cluster.store.documents import FORMAT, Rows, from_rows, to_rows
from forecastle.cluster.threads import in_thread
from forecastle.errors import StoreFailed

POLL_SECONDS = 0.25
"""How often another process's changes are looked for: one read of a counter in shared memory, some 10 microseconds."""

BUSY_SECONDS = 5.0
"""How long a change waits for another process's."""

_TABLES = """
CREATE TABLE IF NOT EXISTS documents (kind TEXT, name TEXT, document BLOB NOT NULL, PRIMARY KEY (kind, name)) STRICT;
CREATE TABLE IF NOT EXISTS states (application TEXT, user TEXT, state BLOB NOT NULL, PRIMARY KEY (application, user))
    STRICT;
"""

T = TypeVar("T")


class SqliteStore:
    """Keeps the state in a file, which is made by the first change. A change is durable before it is told.

    A process may be killed at any instant: the file then holds the state before its change, or after it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[], None]] = []
        self.trouble = ""

    async def read(self) -> Desired:
        """Return the state."""
        return await self._do(lambda: from_rows(self._rows()))

    async def change(self, edit: Callable[[Desired], Desired]) -> Desired:
        """Atomically replace the state by ``edit(state)``, and return it once it is durable."""
        state = await self._do(lambda: self._change(edit))
        self._tell()
        return state

    async def watch(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` soon after this or another process has changed the state."""
        self._watchers.append(changed)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())

    async def load_state(self, application: str, user: str) -> bytes | None:
        """Return what a policy has learned."""
        query = "SELECT state FROM states WHERE application = ? AND user = ?"
        rows = await self._do(lambda: self._select(query, (application, user)))
        return bytes(rows[0][0]) if rows else None

    async def save_state(self, application: str, user: str, state: bytes | None) -> None:
        """Keep what a policy has learned; None to forget it."""
        if state is None:
            await self._do(
                lambda: self._execute("DELETE FROM states WHERE application = ? AND user = ?", application, user)
            )
        else:
            await self._do(lambda: self._execute("REPLACE INTO states VALUES (?, ?, ?)", application, user, state))

    async def forget_states(self, application: str) -> None:
        """Forget what an application's policy has learned."""
        await self._do(lambda: self._execute("DELETE FROM states WHERE application = ?", application))

    async def close(self) -> None:
        """Look for changes no more."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def _do(self, work: Callable[[], T]) -> T:
        """Do what blocks in a thread, one after the other."""
        async with self._turn:
            try:
                result = await in_thread(work)
            except sqlite3.Error as error:
                self.trouble = f"{self._path}: {error}"
                raise StoreFailed(f"the store cannot be used (--store): {self.trouble}") from None
            except OSError as error:
                self.trouble = f"{self._path}: {error.strerror}"
                raise StoreFailed(f"the store cannot be used (--store): {self.trouble}") from None
            self.trouble = ""
            return result

    @contextlib.contextmanager
    def _open(self, *, create: bool) -> Iterator[sqlite3.Connection | None]:
        """Open the file; None where there is none, and none is to be made."""
        if not self._path.exists():
            if not create:
                yield None
                return
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))  # else SQLite makes it for all to read
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found > FORMAT:
                later = f"a later version of Forecastle (its format is {found}, this one's {FORMAT})"
                raise StoreFailed(f"{self._path} is of {later}; start that version, or name another with --store")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if found < FORMAT:
                connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version = {FORMAT};COMMIT;")
            yield connection
        finally:
            connection.close()

    def _rows(self) -> Rows:
        found = self._select("SELECT kind, name, document FROM documents", ())
        return {(str(kind), str(name)): bytes(document) for kind, name, document in found}

    def _select(self, query: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        with self._open(create=False) as connection:
            return connection.execute(query, values).fetchall() if connection is not None else []

    def _execute(self, statement: str, *values: str | bytes) -> None:
        with self._open(create=statement.startswith("REPLACE")) as connection:
            if connection is not None:
                connection.execute(statement, values)

    def _change(self, edit: Callable[[Desired], Desired]) -> Desired:
        with self._open(create=True) as connection:
            assert connection is not None
            connection.execute("BEGIN IMMEDIATE")
            try:
                found = connection.execute("SELECT kind, name, document FROM documents").fetchall()
                before = {(kind, name): bytes(document) for kind, name, document in found}
                state = edit(from_rows(before))
                after = to_rows(state)
                gone = [key for key in before if key not in after]
                new = [(*key, document) for key, document in after.items() if before.get(key) != document]
                connection.executemany("DELETE FROM documents WHERE kind = ? AND name = ?", gone)
                connection.executemany("REPLACE INTO documents VALUES (?, ?, ?)", new)
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        return state

    async def _poll(self) -> None:
        """Look for changes of other processes: SQLite counts them for a connection that stays open."""
        connection: sqlite3.Connection | None = None
        seen: object = None
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                try:
                    if connection is None and self._path.exists():
                        connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=0.0)
                    if connection is not None:
                        version = connection.execute("PRAGMA data_version").fetchone()
                        if version != seen:
                            seen = version
                            self._tell()
                except sqlite3.Error:  # the file is busy, or has gone: the next round will tell
                    if connection is not None:
                        connection.close()
                    connection = seen = None
        finally:
            if connection is not None:
                connection.close()

    def _tell(self) -> None:
        for changed in self._watchers:
            changed()
