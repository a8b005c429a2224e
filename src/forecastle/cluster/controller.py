"""The controller: makes what runs equal to what was asked for."""

from __future__ import annotations

import asyncio

from forecastle.cluster.launchers.process import ProcessLauncher
from forecastle.cluster.specs import ModelSpec
from forecastle.cluster.supervisor import Supervisor
from forecastle.errors import Draining
from forecastle.models.artifact import Artifact
from forecastle.serving.router import Router


class Controller:
    """Starts and stops the replicas of every model. It belongs to one event loop."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._launcher = ProcessLauncher()
        self._supervisors: list[Supervisor] = []

    async def start(self, models: list[tuple[ModelSpec, Artifact]]) -> None:
        """Start every replica of every model and wait until all are ready; each start has its deadline.

        Raises:
            LoadFailed: a replica could not load its model. What was started runs on until ``stop``.
        """
        waiting: dict[asyncio.Future[None], str] = {}
        for spec, artifact in models:
            model = self._router.add(
                spec.name,
                version=spec.version,
                required=spec.required,
                batch_size=spec.batch_size,
                batch_delay=spec.batch_delay,
                queue_size=spec.queue_size,
                limit=spec.timeout,
            )
            for _ in range(spec.replicas):
                supervisor = Supervisor(self._launcher, spec, artifact, model)
                self._supervisors.append(supervisor)
                waiting[supervisor.ready] = spec.name
        for ready in asyncio.as_completed(waiting):
            await ready

    async def stop(self) -> None:
        """Fail what still waits, and end every replica, all at once; takes a few seconds at most."""
        for model in self._router.models.values():
            model.batcher.close(lambda: Draining("the server has stopped"))
        await asyncio.gather(*(supervisor.stop() for supervisor in self._supervisors))
        self._supervisors.clear()

    def kill(self) -> None:
        """End every replica at once."""
        for supervisor in self._supervisors:
            supervisor.kill()
