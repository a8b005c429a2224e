from __future__ import annotations

from collections.abc import Iterator

import pytest

from models.web import Site, serving


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A web server that is reached directly, whatever proxy the machine has."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        yield running
