"""The router: from a model's name and version to its batcher, and the state of everything that is served."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import msgspec

from forecastle.errors import Draining, ModelNotFound
from forecastle.messages import Request
from forecastle.models.signature import Signature
from forecastle.replica.wire import Info
from forecastle.serving.adaptive import AdaptiveBatch
from forecastle.serving.batcher import Batcher
from forecastle.serving.clock import Clock, LoopClock
from forecastle.serving.policy import BatchPolicy, FixedBatch
from forecastle.serving.queue import Queue
from forecastle.serving.slot import Slot
from forecastle.serving.stats import ModelStats
from forecastle.serving.ticket import Done, Ticket

ADAPTIVE = -1
"""The batch size that says: as many as pay, and as are answered in time."""

APART_SIZE = 32
"""The most requests that an adaptive batch holds of a model that predicts them one at a time."""

logger = logging.getLogger(__name__)

PING_SECONDS = 1.0
"""How long ``/ping`` waits for a ``ping_fn``; a replica that is busy or slow counts as it last said."""


class ReplicaStatus(msgspec.Struct):
    """One replica: ``state`` is starting, loading, ready, failed, backing off or stopped, ``reason`` why."""

    index: int
    state: str = "starting"
    pid: int | None = None
    restarts: int = 0
    reason: str = ""


class ModelInfo(msgspec.Struct, frozen=True):
    """What is known of a served model; what its replicas say is empty until the first one is ready."""

    name: str
    version: str
    required: bool
    runtime: str
    signature: Signature | None
    batch_strategy: str
    max_concurrent_transforms: int
    max_payload_in_mb: int
    replicas: list[ReplicaStatus]


@dataclass
class ServedModel:
    """A version of a model that has a route: its batcher, its counters and its replicas' states.

    ``generation`` is another one for each that is ever made, so that what is known of one is not taken for another's.
    """

    name: str
    version: str
    required: bool
    batcher: Batcher
    batch_size: int
    batch_delay: float
    generation: int = field(default_factory=count().__next__)
    replicas: list[ReplicaStatus] = field(default_factory=list)
    info: Info | None = None

    @property
    def stats(self) -> ModelStats:
        """The model's counters."""
        return self.batcher.stats

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self.batcher.waiting

    @property
    def running(self) -> int:
        """How many requests are with a replica."""
        return self.batcher.running

    def learn(self, info: Info) -> None:
        """Take over what the first ready replica says of the model."""
        if self.info is None:
            self.batcher.policy = _policy(self.batch_size, self.batch_delay, together=info.together)
        self.info = info

    @property
    def trouble(self) -> str:
        """Why the model cannot answer, or empty."""
        slots = self.batcher.slots
        if not slots:
            return f"no replica of {self.name!r} is ready"
        if any(slot.healthy for slot in slots):
            return ""
        return f"{self.name!r}: {slots[0].reason}"

    def describe(self) -> ModelInfo:
        """Return a snapshot for those who ask."""
        info = self.info
        return ModelInfo(
            name=self.name,
            version=self.version,
            required=self.required,
            runtime=info.runtime if info else "",
            signature=info.signature if info else None,
            batch_strategy=info.batch_strategy if info else "MultiRecord",
            max_concurrent_transforms=info.max_concurrent_transforms if info else 1,
            max_payload_in_mb=info.max_payload_in_mb if info else 6,
            replicas=self.replicas,
        )


class Router:
    """Knows every model that is served. ``submit`` is the edge of the serving core; it belongs to one event loop.

    ``versions`` has every version by name and version, ``models`` that which a name alone means: its current one.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock | None = None, *, log_batches: bool = False
    ) -> None:
        self._loop = loop
        self._clock = clock or LoopClock(loop)
        self.models: dict[str, ServedModel] = {}
        self.versions: dict[tuple[str, str], ServedModel] = {}
        self._log_batches = log_batches
        self.draining = False
        self.may_be_empty = False  # where models come and go over HTTP, having none is no trouble

    def add(
        self,
        name: str,
        *,
        version: str = "1",
        required: bool = True,
        batch_size: int = ADAPTIVE,
        batch_delay: float = 0.0,
        queue_size: int = 1000,
        limit: float = 60.0,
        named: bool = True,
    ) -> ServedModel:
        """Open a route to a version that has no replica yet; ``named``, its name means it, unless it means another.

        ``limit`` bounds one prediction, in seconds; ``batch_size`` is ``ADAPTIVE`` or the most requests of a batch.
        """
        policy = _policy(batch_size, batch_delay, together=True)
        record = partial(_log_batch, f"{name} version {version}") if self._log_batches else None
        batcher = Batcher(name, policy=policy, queue=Queue(queue_size), clock=self._clock, limit=limit, record=record)
        model = ServedModel(name, version, required, batcher, batch_size, batch_delay)
        self.versions[name, version] = model
        if named:
            self.models.setdefault(name, model)
        return model

    def use(self, name: str, version: str) -> None:
        """Let a name mean this version of it from now on; what waits for another one stays with that."""
        self.models[name] = self.versions[name, version]

    def drop(self, model: ServedModel) -> None:
        """Close the route to a version; its name means none where it meant this one."""
        self.versions.pop((model.name, model.version), None)
        if self.models.get(model.name) is model:
            del self.models[model.name]

    def find(self, name: str, version: str = "") -> ServedModel | None:
        """Return a version that is served, by default the current one, or None."""
        return self.versions.get((name, version)) if version else self.models.get(name)

    def submit(self, request: Request, done: Done) -> Ticket:
        """Take a request; ``done`` is called once, on the loop, perhaps before this returns. Never raises."""
        ticket = Ticket(request, done, self._clock.now())
        model = self.find(request.model, request.version)
        if model is None:
            ticket.settle(self.unknown(request.model, request.version))
        elif self.draining:
            ticket.settle(Draining("the server is stopping and takes no new request", retry_after=1.0))
        else:
            model.batcher.submit(ticket)
        return ticket

    def unknown(self, name: str, version: str = "") -> ModelNotFound:
        """Return the error for a model or a version that is not served; it names those that are."""
        if version and name in self.models:
            there = ", ".join(sorted(version for model, version in self.versions if model == name)[:20])
            return ModelNotFound(f"the model {name!r} has no version {version[:128]!r}; it has {there}")
        names = sorted(self.models)
        served = ", ".join(names[:20]) + (", …" if len(names) > 20 else "") if names else "none"
        return ModelNotFound(f"no model {name[:128]!r} is served; served: {served}")

    def troubles(self) -> list[str]:
        """Say why the server is not ready, as far as known; empty when it is."""
        if self.draining:
            return ["the server is stopping"]
        if not self.models and not self.may_be_empty:
            return ["no model is served yet"]
        return [trouble for model in self.models.values() if model.required and (trouble := model.trouble)]

    def healthy(self) -> bool:
        """Whether every required model has a ready replica and the server is not draining."""
        return not self.troubles()

    async def check(self) -> list[str]:
        """Ask the models' own ``ping_fn`` where a replica is idle, and return the troubles. Ends within a second."""
        asked: list[tuple[Batcher, Slot]] = []
        for model in self.models.values():
            if model.info is not None and model.info.pings:
                asked += [(model.batcher, slot) for slot in model.batcher.slots if not slot.flights]
        if asked:
            pongs = [self._loop.create_future() for _ in asked]
            for (batcher, slot), pong in zip(asked, pongs, strict=True):
                batcher.ping(slot, partial(_resolve, pong))
            await asyncio.wait(pongs, timeout=PING_SECONDS)
        return self.troubles()


def _log_batch(model: str, size: int, reason: str, foretold: float, took: float) -> None:
    text = "batch of %d for %s (%s): foretold %.3f ms, took %.3f ms"
    logger.info(text, size, model, reason, 1000 * foretold, 1000 * took)


def _policy(batch_size: int, batch_delay: float, *, together: bool) -> BatchPolicy:
    """Return the policy of a batch size; what a model predicts one at a time gains nothing by an adaptive one."""
    if batch_size != ADAPTIVE:
        return FixedBatch(batch_size, batch_delay, together=together)
    return AdaptiveBatch(delay=batch_delay) if together else FixedBatch(APART_SIZE, batch_delay, together=False)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
