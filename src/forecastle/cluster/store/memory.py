"""A store that ends with the server."""

from __future__ import annotations

from collections.abc import Callable

from forecastle.cluster.desired import Desired


class MemoryStore:
    """Keeps the state in this process."""

    trouble = ""

    def __init__(self) -> None:
        self._state = Desired()
        self._states: dict[tuple[str, str], bytes] = {}
        self._watchers: list[Callable[[], None]] = []

    async def read(self) -> Desired:
        """Return the state."""
        return self._state

    async def change(self, edit: Callable[[Desired], Desired]) -> Desired:
        """Replace the state."""
        self._state = edit(self._state)
        for changed in self._watchers:
            changed()
        return self._state

    async def watch(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` after each change."""
        self._watchers.append(changed)

    async def load_state(self, application: str, user: str) -> bytes | None:
        """Return what a policy has learned."""
        return self._states.get((application, user))

    async def save_state(self, application: str, user: str, state: bytes | None) -> None:
        """Keep what a policy has learned."""
        if state is None:
            self._states.pop((application, user), None)
        else:
            self._states[application, user] = state

    async def forget_states(self, application: str) -> None:
        """Forget what an application's policy has learned."""
        for key in [key for key in self._states if key[0] == application]:
            del self._states[key]

    async def close(self) -> None:
        """Do nothing."""
