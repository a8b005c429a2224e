"""The controller: makes what runs equal to what was asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from forecastle.cluster.launchers.process import ProcessLauncher
from forecastle.cluster.specs import ModelSpec
from forecastle.cluster.supervisor import Supervisor
from forecastle.errors import AlreadyServed, Draining, LoadFailed, ModelNotFound
from forecastle.models.artifact import Artifact
from forecastle.serving.router import Router

DRAIN_POLL_SECONDS = 0.01


class Controller:
    """Starts and stops the replicas of every model. It belongs to one event loop."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._launcher = ProcessLauncher()
        self._supervisors: dict[str, list[Supervisor]] = {}

    async def start(self, models: list[tuple[ModelSpec, Artifact]]) -> None:
        """Start every replica of every model and wait until all are ready; each start has its deadline.

        Raises:
            LoadFailed: a replica could not load its model. What was started runs on until ``stop``.
        """
        await _ready([supervisor for spec, artifact in models for supervisor in self._launch(spec, artifact)])

    async def add(self, spec: ModelSpec, artifact: Artifact) -> None:
        """Serve one more model; all its replicas are ready when this returns.

        Raises:
            AlreadyServed: a model of this name is served, or being loaded.
            LoadFailed: a replica could not load it; nothing of it is left.
        """
        if spec.name in self._router.models:
            raise AlreadyServed(f"a model {spec.name!r} is served already; remove it first, or choose another name")
        try:
            await _ready(self._launch(spec, artifact))
        except LoadFailed:
            await self.remove(spec.name, drain=0.0)
            raise

    def serves(self, name: str) -> bool:
        """Say whether a model of this name is served, or being loaded."""
        return name in self._router.models

    async def remove(self, name: str, drain: float) -> None:
        """Serve a model no more, and end its processes; what is in flight has ``drain`` seconds to end.

        Raises:
            ModelNotFound: no model of this name is served.
        """
        model = self._router.models.pop(name, None)
        if model is None:
            raise self._router.unknown(name)
        end = time.monotonic() + drain
        # Looking now and then, in a call that is rare, costs less than a check on the path of every request.
        while (model.batcher.waiting or model.batcher.running) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_POLL_SECONDS)
        model.batcher.close(lambda: ModelNotFound(f"the model {name!r} was removed while the request waited"))
        await _stop(self._supervisors.pop(name))

    async def stop(self) -> None:
        """Fail what still waits, and end every replica, all at once; takes a few seconds at most."""
        for model in self._router.models.values():
            model.batcher.close(lambda: Draining("the server has stopped"))
        await _stop(supervisor for supervisors in self._supervisors.values() for supervisor in supervisors)
        self._supervisors.clear()

    def kill(self) -> None:
        """End every replica at once."""
        for supervisors in self._supervisors.values():
            for supervisor in supervisors:
                supervisor.kill()

    def _launch(self, spec: ModelSpec, artifact: Artifact) -> list[Supervisor]:
        model = self._router.add(
            spec.name,
            version=spec.version,
            required=spec.required,
            batch_size=spec.batch_size,
            batch_delay=spec.batch_delay,
            queue_size=spec.queue_size,
            limit=spec.timeout,
        )
        supervisors = [Supervisor(self._launcher, spec, artifact, model) for _ in range(spec.replicas)]
        self._supervisors[spec.name] = supervisors
        return supervisors


async def _ready(supervisors: list[Supervisor]) -> None:
    for ready in asyncio.as_completed([supervisor.ready for supervisor in supervisors]):
        await ready


async def _stop(supervisors: Iterable[Supervisor]) -> None:
    await asyncio.gather(*(supervisor.stop() for supervisor in supervisors))
