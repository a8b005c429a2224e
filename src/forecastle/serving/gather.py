"""One query put to one or several models: what they answer is gathered, until all have answered or time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from forecastle.errors import Cancelled, DeadlineExceeded, RequestError
from forecastle.messages import Request, Response
from forecastle.serving.deadlines import Deadlines
from forecastle.serving.output import as_json
from forecastle.serving.ticket import Done, Result


class Waiter(Protocol):
    """A prediction that is awaited."""

    def cancel(self) -> None:
        """Await it no more; without effect once it is known."""


Ask = Callable[[Request, Done], Waiter | None]
"""Asks the model that a request names; ``done`` is called once, perhaps before this returns None or a waiter."""


class Gather:
    """Calls ``complete`` once: with every answer there, or at the deadline with those that have come.

    ``outputs`` are JSON, by model; ``error`` is that of a model which failed, the last one to do so.
    """

    __slots__ = ("_complete", "_deadlines", "_left", "_waiters", "_watched", "deadline", "error", "outputs", "over")

    def __init__(self, deadline: float, deadlines: Deadlines, complete: Callable[[Gather], None]) -> None:
        self.deadline = deadline
        self.outputs: dict[str, bytes] = {}
        self.error: RequestError | None = None
        self.over = False
        self._complete = complete
        self._deadlines = deadlines
        self._left = 0
        self._watched = False
        self._waiters: list[Waiter] = []

    def start(self, request: Request, models: Sequence[str], ask: Ask) -> None:
        """Put the request to each model; it is the caller's no more."""
        self._left = len(models)
        last = models[-1]
        for model in models:
            copy = request if model is last else _copied(request)
            copy.model = model
            waiter = ask(copy, partial(self._answered, model))
            if waiter is not None and not self.over:
                self._waiters.append(waiter)
        if not self.over:  # what is known already needs no watch
            self._watched = True
            self._deadlines.watch(self)

    def fail(self, error: RequestError) -> None:
        """Complete with an error and no answer, without having asked."""
        self.error = error
        self.over = True
        complete, self._complete = self._complete, _drop
        complete(self)

    def cancel(self) -> None:
        """The client has gone: complete with that error and no answer, and ask no more."""
        if not self.over:
            self.outputs.clear()
            self.error = Cancelled("the client closed the connection before the answer was there")
            self._end()

    def expire(self) -> None:
        """Complete with what is there (called at the deadline)."""
        if self.error is None and not self.outputs:
            self.error = DeadlineExceeded("no model has answered within the time that there was")
        self._end()

    def _answered(self, model: str, result: Result) -> None:
        if self.over:
            return
        if isinstance(result, Response):
            try:
                self.outputs[model] = as_json(result)
            except RequestError as error:
                self.error = error
                if result.rest is not None:
                    result.rest.cancel()
        else:
            self.error = result
        self._left -= 1
        if not self._left:
            self._end()

    def _end(self) -> None:
        self.over = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.cancel()
        complete, self._complete = self._complete, _drop  # so that nothing is left for the collector
        complete(self)
        if self._watched:
            self._deadlines.ended()


def _drop(_: object) -> None:
    """Let go of a second end."""


def _copied(request: Request) -> Request:
    return Request(request.id, "", request.parts, request.accept, request.deadline, request.headers, request.version)
