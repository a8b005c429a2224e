"""What HTTP needs of the serving core: the part of ``serving.router.Router`` that the contracts are written against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from forecastle.errors import ModelNotFound
from forecastle.messages import Request
from forecastle.serving.router import ModelInfo
from forecastle.serving.stats import ModelStats
from forecastle.serving.ticket import Result


class Ticket(Protocol):
    """A request that was submitted."""

    def cancel(self) -> None:
        """The client is gone: drop the request. Without effect once its result is known."""


class Model(Protocol):
    """A model that is served."""

    @property
    def stats(self) -> ModelStats:
        """Its counters."""

    @property
    def waiting(self) -> int:
        """How many requests wait."""

    @property
    def running(self) -> int:
        """How many requests are with a replica."""

    def describe(self) -> ModelInfo:
        """Its state now."""


class Core(Protocol):
    """The serving core."""

    @property
    def models(self) -> Mapping[str, Model]:
        """The models that are served, by name; it changes as models come and go."""

    @property
    def versions(self) -> Mapping[tuple[str, str], Model]:
        """Every version of every model, by name and version."""

    def submit(self, request: Request, done: Callable[[Result], None]) -> Ticket:
        """Take a request. Never raises; calls ``done`` exactly once, on the loop, possibly before it returns."""

    def unknown(self, name: str, version: str = "") -> ModelNotFound:
        """The error for a model or a version that is not served."""

    def troubles(self) -> list[str]:
        """Why the server is not ready, as far as known; empty when it is."""

    async def check(self) -> list[str]:
        """Ask the models' own ``ping_fn`` where that is possible at once, and return the troubles."""
