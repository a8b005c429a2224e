"""The registered models: each version is served as it is registered, and tried again where it cannot be."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from functools import partial

import msgspec

from forecastle.cluster.controller import Controller
from forecastle.cluster.desired import Desired
from forecastle.cluster.prepare import prepared
from forecastle.cluster.specs import ModelSpec, ServerOptions
from forecastle.cluster.threads import in_thread
from forecastle.errors import (
    BadInput,
    Conflict,
    InstallFailed,
    LoadFailed,
    NotLoaded,
    OutOfMemory,
    RequestError,
    StartError,
)
from forecastle.models.artifact import Artifact
from forecastle.serving.router import Router

logger = logging.getLogger(__name__)

FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""After how many seconds a version that cannot be served is tried again: at first, and at the most."""

Key = tuple[str, str]


class RegisteredModels:
    """Starts, scales and ends what is registered, and lets names mean their current versions.

    Models that the controller has from elsewhere (the command line, a multi-model endpoint) are left alone, and no
    registered model takes the name of one. ``failures`` says why a version is not served as it is registered.
    """

    def __init__(self, controller: Controller, router: Router, options: ServerOptions) -> None:
        self.failures: dict[Key, str] = {}
        self._controller = controller
        self._router = router
        self._options = options
        self._desired = Desired()
        self._served: dict[Key, ModelSpec] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._work: dict[Key, asyncio.Task[None]] = {}

    @contextlib.asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """What is done to the models of one name is done in turn.

        Raises:
            Conflict: the name is that of a model which is not registered, but served.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            if any(key[0] == name and key not in self._served for key in self._controller.deployments):
                raise Conflict(
                    f"the model {name!r} belongs to this run of the server; registered ones need other names"
                )
            yield

    def names(self) -> set[str]:
        """Return the name of every model that is served, registered or not."""
        return {name for name, _ in self._controller.deployments}

    async def load(self, spec: ModelSpec) -> None:
        """Serve a version beside those there are, in its turn; all its replicas are ready when this returns.

        Raises:
            BadInput: there is no model at its source.
            NotLoaded, OutOfMemory: it cannot be loaded; nothing of it is left.
        """
        key = spec.name, spec.version
        with _told():
            made: ModelSpec = spec
            artifact: Artifact | None = None
            if spec.source:
                made, artifact = await in_thread(partial(prepared, spec, cache=self._options.cache_dir))
            self._served[key] = spec
            try:
                named = self._desired.current.get(spec.name, spec.version) == spec.version
                await self._controller.add(made, artifact, named=named)
            finally:
                if key not in self._controller.deployments:
                    del self._served[key]

    async def scale(self, spec: ModelSpec) -> None:
        """Give a version that is served as many replicas as it is to have, in its turn.

        Raises:
            NotLoaded, OutOfMemory: a new one could not load it; there are as many as before.
        """
        key = spec.name, spec.version
        if key in self._served:
            with _told():
                await self._controller.scale(*key, spec.replicas, self._options.drain_timeout)
            self._served[key] = spec

    async def end(self, name: str, version: str, instead: str | None) -> None:
        """Serve a version no more, in its turn; its name means ``instead`` from now on, where that is served."""
        if (name, version) not in self._served:
            return
        if instead is not None and (name, instead) in self._served:
            self._router.use(name, instead)
        await self._controller.remove(name, version, drain=self._options.drain_timeout)
        del self._served[name, version]

    def match(self, state: Desired) -> None:
        """Begin whatever makes what is served equal to ``state``; what can be done at once is done."""
        self._desired = state
        for name in state.current:
            self._point(name)
        wanted = {(name, version) for name, versions in state.models.items() for version in versions}
        for key in [key for key in self.failures if key not in wanted]:
            del self.failures[key]
        for key in wanted | self._served.keys():
            if key not in self._work and self._served.get(key) != self._wanted(key):
                self._work[key] = asyncio.create_task(self._bring(key))

    async def stop(self) -> None:
        """Break off what was begun."""
        work = list(self._work.values())
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    def _wanted(self, key: Key) -> ModelSpec | None:
        name, version = key
        return self._desired.models.get(name, {}).get(version)

    async def _bring(self, key: Key) -> None:
        """Make one version as it is registered, however often that takes."""
        delay = FIRST_RETRY
        try:
            while self._served.get(key) != self._wanted(key):
                if (error := await self._step(key)) is None:
                    continue
                self.failures[key] = error.message
                text = "version %s of the model %r is not served as it is registered (next try in %g s): %s"
                logger.error(text, key[1], key[0], delay, error.message)
                await asyncio.sleep(delay)
                delay = min(LAST_RETRY, delay * 2)
        finally:
            del self._work[key]
        self.failures.pop(key, None)

    async def _step(self, key: Key) -> RequestError | None:
        """Do what is missing for one version, and return why it could not be done."""
        name, version = key
        try:
            async with self.turn(name):
                spec, served = self._wanted(key), self._served.get(key)
                if spec is None or (served is not None and _differ(served, spec)):
                    await self.end(name, version, self._desired.current.get(name))
                elif served is not None:
                    await self.scale(spec)
                else:
                    await self.load(spec)
            self._point(name)
        except RequestError as error:
            return error
        return None

    def _point(self, name: str) -> None:
        """Let a name mean its current version as soon as that can answer, or there is nothing else that could."""
        version = self._desired.current.get(name, "")
        if (name, version) not in self._served:
            return
        model, before = self._router.versions[name, version], self._router.models.get(name)
        if before is None or (model is not before and (model.batcher.slots or not before.batcher.slots)):
            self._router.use(name, version)


def _differ(one: ModelSpec, other: ModelSpec) -> bool:
    """Whether two specifications differ in more than the number of replicas."""
    return msgspec.structs.replace(one, replicas=other.replicas) != other


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn what would end a start into what fails a request."""
    try:
        yield
    except LoadFailed as error:
        raise (OutOfMemory if error.memory else NotLoaded)(error.message) from None
    except InstallFailed as error:
        raise NotLoaded(error.message) from None
    except StartError as error:
        raise BadInput(error.message) from None
