"""The store: where the desired state is kept, by the URL that ``--store`` names."""

from __future__ import annotations

from pathlib import Path

from forecastle.cluster.store.memory import MemoryStore
from forecastle.cluster.store.sqlite import SqliteStore
from forecastle.cluster.store.store import Store
from forecastle.errors import UsageError


def open_store(url: str | Path) -> Store:
    """Open a store: ``memory``, or a path or ``sqlite:///PATH`` for a file. Nothing is read or made yet.

    Raises:
        UsageError: it is a URL of another kind.
    """
    text = str(url)
    if text == "memory":
        return MemoryStore()
    path = text.removeprefix("sqlite://")
    if "://" in path:
        kind = path.partition("://")[0]
        raise UsageError(f"{kind}:// is no kind of --store: give a file, redis://HOST:PORT/DB, or memory")
    return SqliteStore(Path(path).expanduser().absolute())
