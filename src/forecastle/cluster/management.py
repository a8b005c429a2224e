"""Management: changes to what is served while it is served, kept in the store, and so found again after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from forecastle.cluster import desired
from forecastle.cluster.applications import Applications
from forecastle.cluster.desired import Application, Desired
from forecastle.cluster.registered import RegisteredModels
from forecastle.cluster.specs import ModelSpec
from forecastle.cluster.store.store import Store
from forecastle.errors import RequestError

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""How long after the store could not be read it is tried again."""


class Management:
    """Holds what is asked for, and makes what is served equal to it. It belongs to one event loop.

    A model is loaded here before it is registered, so that what cannot be loaded never is. Other servers at the same
    store then follow. Every call raises ``StoreFailed`` where the store cannot be reached; nothing has changed then.
    """

    def __init__(self, store: Store, applications: Applications, models: RegisteredModels) -> None:
        self.desired = Desired()
        self._store = store
        self._applications = applications
        self._models = models
        self._storing = asyncio.Lock()  # what this server reads and changes comes in one order
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def failures(self) -> dict[tuple[str, str], str]:
        """Why registered versions are not served, by name and version."""
        return self._models.failures

    @property
    def trouble(self) -> str:
        """Why the store cannot be reached now, or empty."""
        return self._store.trouble

    async def start(self) -> None:
        """Serve what is registered, from now on as it changes; its models become ready one by one."""
        await self._store.watch(self._changed.set)
        await self._exchange(self._store.read)
        self._following = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Follow the store no more, and let it have what policies have learned."""
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following
        await self._models.stop()
        await self._applications.stop()
        await self._store.close()

    async def register(self, application: Application) -> None:
        """Add an application.

        Raises:
            BadInput, Conflict: as ``desired.register``; also where its policy is none.
        """
        self._applications.check(application)
        desired.register(self.desired, application)
        await self._store.forget_states(application.name)
        await self._change(partial(desired.register, application=application))

    async def unregister(self, name: str) -> None:
        """Take an application away; what it was asked before is still answered."""
        await self._change(partial(desired.unregister, name=name))
        await self._store.forget_states(name)

    async def link(self, name: str, models: tuple[str, ...]) -> None:
        """Link an application to models, as ``desired.link``; those of this run, which are not registered, too."""
        await self._change(partial(desired.link, name=name, models=models, served=self._models.names()))

    async def unlink(self, name: str, models: tuple[str, ...]) -> None:
        """Take links of an application away, as ``desired.unlink``."""
        await self._change(partial(desired.unlink, name=name, models=models))

    async def deploy(self, spec: ModelSpec, *, current: bool = True) -> ModelSpec:
        """Load a version, register it once it is ready, make it the current one, and return it as it is registered.

        Raises:
            BadInput: there is no model at its source, or something of it is none.
            Conflict: it is registered, or contradicts what is.
            NotLoaded, OutOfMemory: it cannot be loaded; nothing of it is left.
        """
        async with self._models.turn(spec.name):
            spec = desired.settled(spec)
            desired.add_model(self.desired, spec, current=current)
            await self._models.load(spec)
            try:
                await self._change(partial(desired.add_model, spec=spec, current=current))
            except BaseException:
                await self._models.end(spec.name, spec.version, None)
                raise
        return spec

    async def remove(self, name: str, version: str | None = None) -> None:
        """Take a version away, or all of a model; their memory is free when this returns.

        Raises:
            ModelNotFound: it is not registered.
            Conflict: it belongs to this run, and to no store.
        """
        async with self._models.turn(name):
            versions = [version] if version is not None else list(self.desired.models.get(name, {None: None}))

            def edit(state: Desired) -> Desired:
                for each in versions:
                    state = desired.remove_model(state, name, each or "")
                return state

            await self._change(edit)
            for each in versions:
                await self._models.end(name, each or "", self.desired.current.get(name))

    async def use(self, name: str, version: str) -> None:
        """Make a registered version the current one, as ``desired.use_version``."""
        async with self._models.turn(name):
            await self._change(partial(desired.use_version, name=name, version=version))

    async def scale(self, name: str, version: str | None, replicas: int) -> None:
        """Change how many replicas a version has, by default the current one; they are there when this returns.

        Raises:
            ModelNotFound, BadInput: as ``desired.scale``.
            NotLoaded, OutOfMemory: a new replica could not load it; there are as many as before.
        """
        async with self._models.turn(name):
            version = self.desired.model(name, version).version
            edit = partial(desired.scale, name=name, version=version, replicas=replicas)
            await self._models.scale(edit(self.desired).model(name, version))
            await self._change(edit)

    async def _change(self, edit: Callable[[Desired], Desired]) -> None:
        await self._exchange(partial(self._store.change, edit))

    async def _exchange(self, call: Callable[[], Awaitable[Desired]]) -> None:
        async with self._storing:
            self.desired = await call()
            await self._applications.match(self.desired)
            self._models.match(self.desired)

    async def _follow(self) -> None:
        """Make what is served equal to what is registered, whoever has changed it."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._exchange(self._store.read)
            except RequestError as error:
                logger.warning("the store cannot be read, what is served stays as it is: %s", error.message)
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()
