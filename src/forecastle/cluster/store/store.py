"""The store's protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from forecastle.cluster.desired import Desired


class Store(Protocol):
    """Keeps the desired state, and what policies have learned."""

    @property
    def trouble(self) -> str:
        """Why it cannot be reached now, or empty."""

    async def read(self) -> Desired:
        """Return the state."""

    async def change(self, edit: Callable[[Desired], Desired]) -> Desired:
        """Atomically replace the state by ``edit(state)``, and return it once it is durable."""

    async def watch(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` soon after anyone has changed the state."""

    async def load_state(self, application: str, user: str) -> bytes | None:
        """Return what a policy has learned."""

    async def save_state(self, application: str, user: str, state: bytes | None) -> None:
        """Keep what a policy has learned."""

    async def forget_states(self, application: str) -> None:
        """Forget what an application's policy has learned."""

    async def close(self) -> None:
        """Let go."""
