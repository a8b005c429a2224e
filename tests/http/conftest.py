"""A core with one model, the inference application over it, and a server and a client for both."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from forecastle.http.app import InferenceApp
from forecastle.http.stats import HttpStats
from http_fakes import MemoryCore, Running, running


@pytest.fixture
def core() -> MemoryCore:
    return MemoryCore("resnet-18")


@pytest.fixture
def stats() -> HttpStats:
    return HttpStats()


@pytest.fixture
def server(core: MemoryCore, stats: HttpStats) -> Iterator[Running]:
    with running(InferenceApp(core, stats, timeout=30.0, max_body=100_000)) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=20.0) as client:
        yield client
