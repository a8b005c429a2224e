"""The controller: starts and stops the replicas of every version of every model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from forecastle.cluster.drain import drained
from forecastle.cluster.launchers.process import ProcessLauncher
from forecastle.cluster.specs import ModelSpec
from forecastle.cluster.supervisor import Supervisor
from forecastle.errors import AlreadyServed, Draining, LoadFailed, ModelNotFound
from forecastle.models.artifact import Artifact
from forecastle.serving.router import Router, ServedModel


class Deployment:
    """A version that is served: what it was made of, its route, and the supervisors of its replicas."""

    def __init__(self, spec: ModelSpec, artifact: Artifact | None, model: ServedModel) -> None:
        self.spec = spec
        self.artifact = artifact
        self.model = model
        self.supervisors: list[Supervisor] = []


class Controller:
    """Makes routes and replicas, and takes them away. It belongs to one event loop.

    Calls about one name come one after the other; whoever calls sees to that.
    """

    def __init__(self, router: Router) -> None:
        self._router = router
        self._launcher = ProcessLauncher()
        self.deployments: dict[tuple[str, str], Deployment] = {}
        self._running: set[Supervisor] = set()  # also those of what is just being removed

    async def start(self, models: list[tuple[ModelSpec, Artifact]]) -> None:
        """Start every replica of every model and wait until all are ready; each start has its deadline.

        Raises:
            LoadFailed: a replica could not load its model. What was started runs on until ``stop``.
        """
        deployments = [self._route(spec, artifact) for spec, artifact in models]
        await _ready([each for made in deployments for each in self._launch(made, made.spec.replicas)])

    async def add(self, spec: ModelSpec, artifact: Artifact | None, *, named: bool = True) -> None:
        """Serve one more version; all its replicas are ready when this returns. Without an artifact there are none.

        With ``named`` the model's name means it from now on, unless it means another version.

        Raises:
            AlreadyServed: this version is served, or being loaded.
            LoadFailed: a replica could not load it; nothing of it is left.
        """
        if (spec.name, spec.version) in self.deployments:
            text = f"version {spec.version!r} of a model {spec.name!r} is served already"
            raise AlreadyServed(f"{text}; remove it first, or choose another name or version")
        deployment = self._route(spec, artifact, named=named)
        if artifact is None or not spec.replicas:
            deployment.model.batcher.abandon()
        try:
            await _ready(self._launch(deployment, spec.replicas))
        except LoadFailed:
            await self.remove(spec.name, spec.version, drain=0.0)
            raise

    async def scale(self, name: str, version: str, replicas: int, drain: float) -> None:
        """Change the number of replicas; new ones are ready when this returns, those too many have ended.

        What those hold has ``drain`` seconds to end.

        Raises:
            ModelNotFound: this version is not served.
            LoadFailed: a new replica could not load it; there are as many as before.
        """
        deployment = self._deployment(name, version)
        supervisors = deployment.supervisors
        more = replicas - len(supervisors)
        deployment.spec = msgspec.structs.replace(deployment.spec, replicas=replicas)
        if more < 0:
            surplus = supervisors[replicas:]
            del supervisors[replicas:]
            await asyncio.gather(*(supervisor.retire(drain) for supervisor in surplus))
            if not supervisors:
                deployment.model.batcher.abandon()
            return
        try:
            await _ready(self._launch(deployment, more))
        except LoadFailed:
            surplus = supervisors[-more:]
            del supervisors[-more:]
            deployment.spec = msgspec.structs.replace(deployment.spec, replicas=len(supervisors))
            await asyncio.gather(*(supervisor.retire(0.0) for supervisor in surplus))
            raise

    def serves(self, name: str) -> bool:
        """Say whether a model of this name is served, or being loaded."""
        return any(model == name for model, _ in self.deployments)

    async def remove(self, name: str, version: str | None = None, *, drain: float) -> None:
        """Serve a version no more (all versions by default), and end its processes.

        What is in flight has ``drain`` seconds to end.

        Raises:
            ModelNotFound: it is not served.
        """
        gone = [key for key in self.deployments if key[0] == name and version in {None, key[1]}]
        if not gone:
            raise self._router.unknown(name, version or "")
        await asyncio.gather(*(self._remove(self.deployments.pop(key), drain) for key in gone))

    async def stop(self) -> None:
        """Fail what still waits, and end every replica, all at once; takes a few seconds at most."""
        models = [deployment.model for deployment in self.deployments.values()]
        for model in [*models, *(supervisor.model for supervisor in self._running)]:
            model.batcher.close(lambda: Draining("the server has stopped"))
        await _stop(self._running)
        self.deployments.clear()

    def kill(self) -> None:
        """End every replica at once."""
        for supervisor in self._running:
            supervisor.kill()

    async def _remove(self, deployment: Deployment, drain: float) -> None:
        model = deployment.model
        self._router.drop(model)
        batcher = model.batcher
        await drained(lambda: not (batcher.waiting or batcher.running), drain)
        name = model.name
        batcher.close(lambda: ModelNotFound(f"the model {name!r} was removed while the request waited"))
        await _stop(deployment.supervisors)

    def _deployment(self, name: str, version: str) -> Deployment:
        deployment = self.deployments.get((name, version))
        if deployment is None:
            raise self._router.unknown(name, version)
        return deployment

    def _route(self, spec: ModelSpec, artifact: Artifact | None, *, named: bool = True) -> Deployment:
        model = self._router.add(
            spec.name,
            version=spec.version,
            required=spec.required,
            batch_size=spec.batch_size,
            batch_delay=spec.batch_delay,
            queue_size=spec.queue_size,
            limit=spec.timeout,
            named=named,
        )
        deployment = Deployment(spec, artifact, model)
        self.deployments[spec.name, spec.version] = deployment
        return deployment

    def _launch(self, deployment: Deployment, count: int) -> list[Supervisor]:
        artifact = deployment.artifact
        if artifact is None:
            return []
        supervisors = [Supervisor(self._launcher, deployment.spec, artifact, deployment.model) for _ in range(count)]
        for supervisor in supervisors:
            self._running.add(supervisor)
            supervisor.when_over(self._running.discard)
        deployment.supervisors += supervisors
        return supervisors


async def _ready(supervisors: list[Supervisor]) -> None:
    for ready in asyncio.as_completed([supervisor.ready for supervisor in supervisors]):
        await ready


async def _stop(supervisors: Iterable[Supervisor]) -> None:
    await asyncio.gather(*(supervisor.stop() for supervisor in supervisors))
