"""The store: where the desired state is kept, by the URL that ``--store`` names."""

from __future__ import annotations

import importlib
from pathlib import Path

from forecastle.cluster.store.memory import MemoryStore
from forecastle.cluster.store.sqlite import SqliteStore
from forecastle.cluster.store.store import Store
from forecastle.errors import UsageError


def open_store(url: str | Path, cluster: str = "default") -> Store:
    """Open a store: ``memory``, a path or ``sqlite:///PATH`` for a file, ``redis://…``. Nothing is read or made yet.

    A Redis may keep several clusters; a file keeps one.

    Raises:
        UsageError: it is a URL of another kind, or of a Redis whose package is missing.
    """
    text = str(url)
    if text == "memory":
        return MemoryStore()
    if text.startswith(("redis://", "rediss://")):
        return _redis(text, cluster)
    path = text.removeprefix("sqlite://")
    if "://" in path:
        kind = path.partition("://")[0]
        raise UsageError(f"{kind}:// is no kind of --store: give a file, redis://HOST:PORT/DB, or memory")
    return SqliteStore(Path(path).expanduser().absolute())


def _redis(url: str, cluster: str) -> Store:
    try:
        module = importlib.import_module("forecastle.cluster.store.redis")
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "redis":
            raise
        raise UsageError("--store redis://… needs the package redis: pip install 'forecastle[redis]'") from None
    store: Store = module.RedisStore(url, cluster)
    return store
