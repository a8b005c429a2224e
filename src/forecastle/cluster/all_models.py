"""Models of the run and registered ones alike: what a management API sees that makes no difference between them."""

from __future__ import annotations

import asyncio

from forecastle.cluster.controller import Controller, Deployment
from forecastle.cluster.management import Management
from forecastle.cluster.registry import Registry
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import LoadFailed, ModelNotFound, NotLoaded, OutOfMemory
from forecastle.serving.router import Router


class AllModels:
    """Finds, scales, switches and removes versions that are served. ``drain`` is in seconds.

    What is changed of a registered model is kept in the store, what is changed of another holds for this run.
    """

    def __init__(
        self,
        management: Management,
        controller: Controller,
        router: Router,
        *,
        drain: float,
        registry: Registry | None = None,
    ) -> None:
        self._management = management
        self._controller = controller
        self._router = router
        self._registry = registry
        self._drain = drain
        self._turns: dict[str, asyncio.Lock] = {}

    def spec(self, name: str, version: str = "") -> ModelSpec:
        """Return what a version is, by default the current one; one that is registered need not be served.

        Raises:
            ModelNotFound: it is neither.
        """
        versions = self._management.desired.models.get(name, {})
        found = versions.get(version or self._management.desired.current.get(name, ""))
        return self.find(name, version).spec if found is None else found

    def served(self, name: str, version: str) -> Deployment | None:
        """Return a version as it is served, or ``None``."""
        return self._controller.deployments.get((name, version))

    def trouble(self, name: str, version: str) -> str:
        """Say why a registered version is not served as it is registered, or nothing."""
        return self._management.failures.get((name, version), "")

    def find(self, name: str, version: str = "") -> Deployment:
        """Return a version that is served, by default the current one.

        Raises:
            ModelNotFound: it is not served.
        """
        model = self._router.find(name, version)
        found = None if model is None else self._controller.deployments.get((name, model.version))
        if found is None:
            known = self._router.unknown(name, version).message
            raise ModelNotFound(f"Model not found: {name[:128]}; {known}")
        return found

    def source(self, name: str, version: str) -> str:
        """Return where a version came from, empty where that is no place."""
        found = self.served(name, version)
        return (found.spec.source or "") if found is not None else ""

    def registered(self, name: str, version: str) -> bool:
        """Say whether a version is registered, and not of this run."""
        return version in self._management.desired.models.get(name, {})

    async def scale(self, name: str, version: str, replicas: int) -> None:
        """Change how many replicas a version has; they are there when this returns.

        Raises:
            ModelNotFound: it is not served.
            NotLoaded, OutOfMemory: a new one could not load it; there are as many as before.
        """
        version = self.find(name, version).spec.version
        if self.registered(name, version):
            await self._management.scale(name, version, replicas)
            return
        async with self._turn(name):
            try:
                await self._controller.scale(name, version, replicas, self._drain)
            except LoadFailed as error:
                raise (OutOfMemory if error.memory else NotLoaded)(error.message) from None

    async def use(self, name: str, version: str) -> None:
        """Let a name mean a version.

        Raises:
            ModelNotFound: it is not served.
        """
        if self.registered(name, version):
            await self._management.use(name, version)
        else:
            self.find(name, version)
            self._router.use(name, version)

    async def remove(self, name: str, version: str = "") -> None:
        """Take a version away, by default all of a model; their memory is free when this returns.

        Raises:
            ModelNotFound: it is not served.
        """
        if name in self._management.desired.models:
            await self._management.remove(name, version or None)
        elif self._registry is not None and name in self._registry.urls:
            await self._registry.unload(name)
        else:
            self.find(name, version)
            async with self._turn(name):
                await self._controller.remove(name, version or None, drain=self._drain)

    def _turn(self, name: str) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())
