from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.store.servers import RedisServer


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    yield server
    server.kill()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of any kind."""
    return _url(request, tmp_path)


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where several stores keep the same."""
    return _url(request, tmp_path)


def _url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory"
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis")
        return server.url
    return str(tmp_path / "state" / "state.db")
