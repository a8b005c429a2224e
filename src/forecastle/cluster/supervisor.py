"""The supervisor of one replica: start it, use it while it lives, and start it again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import time
from collections.abc import Callable
from typing import Any

from forecastle.cluster.drain import drained
from forecastle.cluster.launchers.process import ProcessLauncher, ProcessReplica
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import LoadFailed, RequestError
from forecastle.models.artifact import Artifact
from forecastle.replica.wire import Info
from forecastle.serving.link import ReplicaLink
from forecastle.serving.router import ReplicaStatus, ServedModel
from forecastle.serving.slot import Slot
from forecastle.serving.ticket import Result

logger = logging.getLogger(__name__)

FIRST_BACK_OFF = 0.25
LAST_BACK_OFF = 30.0
STEADY_SECONDS = 60.0
"""A replica that lived this long has started well: its end is the first again."""

END_SECONDS = 1.0
"""How long a replica may take to end by itself once its connection is closed, and again after SIGTERM."""


class Life:
    """One life of a replica, from launch to death: what its link tells, brought together."""

    def __init__(self, model: ServedModel, status: ReplicaStatus) -> None:
        self.link = ReplicaLink(self)
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.reason = ""
        self.memory = False
        self.slot: Slot | None = None
        self._model = model
        self._status = status

    def loading(self) -> None:
        """The process is up."""
        self._status.state = "loading"

    def ready(self, info: Info) -> None:
        """The model is loaded: requests may come."""
        self._status.state, self._status.reason = "ready", ""
        self._model.learn(info)
        self.slot = Slot(self.link, self.hung)
        self._model.batcher.attach(self.slot)
        if not self.started.done():
            self.started.set_result(None)

    def failed(self, reason: str, memory: bool) -> None:
        """The model cannot be loaded."""
        self.memory = memory
        self.end(reason)

    def answered(self, batch: int, results: list[Result], seconds: float) -> None:
        """A batch came back."""
        if self.slot is None or not self._model.batcher.answered(self.slot, batch, results, seconds):
            self.end("it broke the protocol: it answered what it was not asked")

    def piece(self, batch: int, index: int, data: bytes) -> None:
        """A piece of an answer came."""
        if self.slot is None or not self._model.batcher.piece(self.slot, batch, index, data):
            self.end("it broke the protocol: it went on with an answer that it had not begun")

    def finished(self, batch: int, index: int, error: RequestError | None) -> None:
        """An answer that came in pieces is over."""
        if self.slot is None or not self._model.batcher.ended(self.slot, batch, index, error):
            self.end("it broke the protocol: it ended an answer that it had not begun")

    def ponged(self, healthy: bool, reason: str) -> None:
        """``ping_fn`` has answered."""
        if self.slot is not None:
            self._model.batcher.ponged(self.slot, healthy, reason)

    def broke(self, reason: str) -> None:
        """What came over the connection was no frame of ours."""
        self.end(reason)

    def lost(self) -> None:
        """The connection has closed: use the replica no more. Why, its process will tell."""
        if self.slot is not None:
            self._model.batcher.retire(self.slot)
        self.ended.set()

    def hung(self) -> None:
        """A prediction is over its limit."""
        self.end("a prediction ran longer than --timeout allows")

    def end(self, reason: str) -> None:
        """End this life for a reason; the first one counts. What is in the replica is given back at once."""
        if self.reason:
            return
        self.reason = reason
        self.lost()
        if self.slot is not None:
            self._model.batcher.release(self.slot, reason)


class Supervisor:
    """Keeps one replica running, once it has been ready.

    ``ready`` is done when it is ready for the first time. It holds a ``LoadFailed`` if the first start fails, which is
    for whoever asked for the start to deal with: it would fail again.
    """

    def __init__(self, launcher: ProcessLauncher, spec: ModelSpec, artifact: Artifact, model: ServedModel) -> None:
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(_look)
        self._launcher = launcher
        self._spec = spec
        self._artifact = artifact
        self.model = model
        self._status = ReplicaStatus(max((status.index for status in model.replicas), default=-1) + 1)
        model.replicas.append(self._status)
        self._replica: ProcessReplica | None = None
        self._life: Life | None = None
        self._retired = False
        self._stopping = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._over)

    def when_over(self, call: Callable[[Supervisor], None]) -> None:
        """Have a call made once the replica and the supervision have ended."""
        self._task.add_done_callback(lambda _: call(self))

    async def stop(self) -> None:
        """End the replica and the supervision; takes three times ``END_SECONDS`` and a moment at most.

        It goes on where the caller is cancelled.
        """
        self._stopping.set()
        await asyncio.shield(self._task)

    async def retire(self, drain: float) -> None:
        """Give the replica nothing more, and end it once it holds nothing, or after ``drain`` seconds."""
        self._retired = True
        slot = self._life.slot if self._life is not None else None
        if slot is not None:
            self.model.batcher.retire(slot)
            await drained(lambda: not slot.flights, drain)
        await self.stop()
        self.model.replicas.remove(self._status)

    def kill(self) -> None:
        """End the replica at once."""
        if self._replica is not None:
            self._replica.kill()

    def _over(self, task: asyncio.Task[None]) -> None:
        """Let nobody wait for a start whose supervision has failed, for a defect of ours."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.ready.done():
            self.ready.set_exception(error)

    async def _run(self) -> None:
        """Live again and again. Nothing in here is ever cancelled, so that no life ends without its clean-up."""
        back_off = 0.0
        while True:
            began = time.monotonic()
            reason, memory = await self._live()
            self._status.pid, self._status.reason = None, reason
            if self._stopping.is_set() or self._retired:
                break
            if not self.ready.done():
                self._status.state = "failed"
                text = f"the model {self._spec.name!r} could not be loaded: {reason}"
                self.ready.set_exception(LoadFailed(text, memory=memory))
                return
            logger.error("replica %s#%d has ended: %s", self._spec.name, self._status.index, reason.splitlines()[0])
            self._status.state = "backing off"
            if time.monotonic() - began > STEADY_SECONDS:
                back_off = 0.0
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), back_off)
                break
            back_off = min(LAST_BACK_OFF, max(FIRST_BACK_OFF, back_off * 2))
            self._status.restarts += 1
        self._status.state = "stopped"
        self.ready.cancel()

    async def _live(self) -> tuple[str, bool]:
        """Run the replica once, from launch to death, and say why it died, and whether for want of memory."""
        self._status.state = "starting"
        try:
            replica = await self._launcher.launch(self._spec, self._status.index, self._artifact)
        except OSError as error:
            return f"its process could not be started: {error}", error.errno == errno.ENOMEM
        self._replica, self._status.pid = replica, replica.pid
        life = self._life = Life(self.model, self._status)
        death = asyncio.create_task(replica.wait())
        try:
            if await _connected(life, replica):
                await self._watch(life, death)
        finally:
            life.lost()
            life.link.close()
            how = await _death(replica, death, by_itself=not life.reason)
            life.memory = life.memory or (replica.killed and not life.reason)
            life.end(f"its process has gone: {how}")
            replica.close()
            self._replica = self._life = None
        return (life.reason if life.slot else f"{life.reason}{_quoted(replica.tail)}"), life.memory

    async def _watch(self, life: Life, death: asyncio.Task[str]) -> None:
        """Return when a life is over: its process's, its connection's, the time it had to become ready, or ours."""
        end = asyncio.create_task(life.ended.wait())
        stop = asyncio.create_task(self._stopping.wait())
        over: set[asyncio.Future[Any]] = {end, stop, death}
        limit = self._spec.start_timeout
        await asyncio.wait({*over, life.started}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if life.started.done():
            if not self.ready.done():
                self.ready.set_result(None)
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        elif not any(future.done() for future in over):
            life.end(f"it was not ready within {limit:g} s, the limit set by --start-timeout")
        end.cancel()
        stop.cancel()


async def _connected(life: Life, replica: ProcessReplica) -> bool:
    """Connect to a replica; false where its process has ended before that, and the socket with it."""
    try:
        await asyncio.get_running_loop().create_unix_connection(lambda: life.link, str(replica.address))
    except OSError:
        return False
    replica.hide()
    return True


async def _death(replica: ProcessReplica, death: asyncio.Task[str], *, by_itself: bool) -> str:
    """See that a replica whose connection is closed ends: by itself where it may, else by SIGTERM, else by SIGKILL."""
    if by_itself:
        await asyncio.wait({death}, timeout=END_SECONDS)
    if not death.done():
        replica.terminate()
        await asyncio.wait({death}, timeout=END_SECONDS)
    if not death.done():
        replica.kill()
    return await death


def _look(ready: asyncio.Future[None]) -> None:
    """Look at a start that failed, so that it counts as seen even where another one's failure is told."""
    if not ready.cancelled():
        ready.exception()


def _quoted(tail: str) -> str:
    return f"\n--- the last lines of its output ---\n{tail}" if tail else ""
