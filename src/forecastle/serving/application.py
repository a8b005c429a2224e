"""An application as it is served: it asks the models it is linked to, and answers a default where they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec

from forecastle.errors import (
    BadInput,
    Cancelled,
    DeadlineExceeded,
    Draining,
    ModelNotFound,
    NoReplica,
    Overloaded,
    RequestError,
)
from forecastle.messages import Request
from forecastle.serving.cache import Cache
from forecastle.serving.clock import Clock
from forecastle.serving.deadlines import Deadlines
from forecastle.serving.gather import Gather, Waiter
from forecastle.serving.selection.policy import Policy, Selection
from forecastle.serving.stats import SECONDS, Histogram
from forecastle.serving.ticket import Done, Ticket

CAUSES = ("deadline", "overload", "no_replica", "error")
"""Why an answer is the default: time was up, too much waits, no replica of a linked model is there, a model failed."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What an application answers: ``output`` is one JSON value.

    With a ``cause`` it is the default output, and ``error`` what led to it. An error without a cause is no
    answer at all. ``confidence`` is the share of the models that agree, where several were asked.
    """

    output: bytes
    cause: str = ""
    error: RequestError | None = None
    confidence: float | None = None


@dataclass
class ApplicationStats:
    """Counters of one application; each query is in the end an answer of a model, a default, a failure or cancelled."""

    queries: int = 0
    answered: int = 0
    failed: int = 0
    cancelled: int = 0
    feedbacks: int = 0
    defaults: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))


class Model(Protocol):
    """A version that is served."""

    @property
    def generation(self) -> int:
        """A number that no other version has, nor this one after it was loaded anew."""


class Models(Protocol):
    """What an application asks: the part of ``serving.router.Router`` that it needs."""

    def find(self, name: str, version: str = "") -> Model | None:
        """Return a version that is served, by default the current one, or None."""

    def submit(self, request: Request, done: Done) -> Ticket:
        """Take a request; ``done`` is called once, perhaps before this returns."""


class ServedApplication:
    """Takes queries and feedback. ``slo`` is its latency objective in seconds, ``default`` its default output in JSON.

    ``learned`` is set whenever feedback has changed what its policy knows; whoever keeps that takes it back.
    """

    def __init__(
        self,
        name: str,
        *,
        input_type: str,
        default: bytes,
        slo: float,
        models: Sequence[str],
        policy: Policy,
        cache: Cache | None,
        router: Models,
        clock: Clock,
    ) -> None:
        self.name = name
        self.input_type = input_type
        self.default = default
        self.slo = slo
        self.models = tuple(models)
        self.policy = policy
        self.cache = cache
        self.stats = ApplicationStats()
        self.learned = False
        self._router = router
        self._clock = clock
        self._deadlines = Deadlines(clock)

    @property
    def waiting(self) -> int:
        """How many queries are not answered yet."""
        return len(self._deadlines)

    def ask(self, request: Request, done: Callable[[Answer], None]) -> Gather:
        """Answer a query by its deadline; ``done`` is called once, perhaps before this returns. Never raises."""
        self.stats.queries += 1
        began = self._clock.now()
        models = self.models
        chosen = models and not request.version
        selection = self.policy.select(models) if chosen else Selection(models[:1])
        gather = Gather(request.deadline, self._deadlines, partial(self._complete, selection, began, done))
        if not selection.ask:
            gather.fail(NoReplica(f"no model is linked to the application {self.name!r}"))
            return gather
        shadow = [
            Request(request.id, name, request.parts, request.accept, request.deadline, request.headers)
            for name in selection.shadow
        ]
        gather.start(request, selection.ask, self._put)
        for copy in shadow:
            self._put(copy, _drop)
        return gather

    def check_version(self, version: str) -> None:
        """Refuse a version that no query can be answered by.

        Raises:
            BadInput: the application is linked to no model, or to several.
            ModelNotFound: its model has no such version.
        """
        if len(self.models) != 1:
            how = "Too many models" if self.models else "No models"
            raise BadInput(f"{how} linked to application {self.name}")
        (model,) = self.models
        if self._router.find(model, version) is None:
            raise ModelNotFound(f"Requested version: {version[:128]} does not exist for model: {model}")

    def learn(self, request: Request, label: bytes, done: Callable[[], None]) -> Gather:
        """Tell the policy what would have been right, in JSON; ``done`` is called once it knows, by the deadline.

        Models are asked anew where the cache has forgotten what they said.
        """
        self.stats.feedbacks += 1
        names = self.policy.feedback_models(self.models)

        def complete(gather: Gather) -> None:
            self.policy.feedback(label, gather.outputs)
            self.learned = True
            done()

        gather = Gather(request.deadline, self._deadlines, complete)
        if names:
            gather.start(request, names, self._put)
        else:
            gather.over = True
            done()
        return gather

    def _put(self, request: Request, done: Done) -> Waiter | None:
        router, cache = self._router, self.cache
        model = router.find(request.model, request.version)
        if cache is None or model is None:
            return router.submit(request, done)
        return cache.ask(request, model.generation, router.submit, done)

    def _complete(self, selection: Selection, began: float, done: Callable[[Answer], None], gather: Gather) -> None:
        stats = self.stats
        error = gather.error
        if not gather.outputs and isinstance(error, Cancelled | Draining):
            stats.cancelled += isinstance(error, Cancelled)
            stats.failed += isinstance(error, Draining)
            done(Answer(b"", error=error))
            return
        stats.seconds.observe(self._clock.now() - began)
        if gather.outputs:
            try:
                combined = self.policy.combine(selection, gather.outputs)
            except RequestError as no:
                error = no
            else:
                stats.answered += 1
                done(Answer(combined.output, confidence=combined.confidence))
                return
        cause = cause_of(error)
        stats.defaults[cause] += 1
        done(Answer(self.default, cause, error))


def _drop(_: object) -> None:
    """Let go of what nobody waits for."""


def cause_of(error: RequestError | None) -> str:
    """Return which of ``CAUSES`` an error is a case of."""
    if isinstance(error, DeadlineExceeded):
        return "deadline"
    if isinstance(error, Overloaded):
        return "overload"
    if isinstance(error, NoReplica | ModelNotFound):
        return "no_replica"
    return "error"
