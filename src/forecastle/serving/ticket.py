"""One request inside the serving core: who waits for it, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from forecastle.errors import Cancelled, RequestError
from forecastle.messages import Request, Response

Result = Response | RequestError
Done = Callable[[Result], None]


class Owner(Protocol):
    """Whoever holds a ticket while it waits or runs, and wants to know that its client has gone."""

    def cancelled(self, ticket: Ticket) -> None:
        """Note that the ticket was settled by its client."""


class Ticket:
    """Holds the one promise that matters: ``done`` is called exactly once, however many ends race for it.

    ``accepted`` is in monotonic seconds, ``waiting`` says whether the ticket is in its owner's queue, and ``attempts``
    counts the replicas that died with this request in them.
    """

    __slots__ = ("_done", "accepted", "attempts", "owner", "request", "waiting")

    def __init__(self, request: Request, done: Done, accepted: float) -> None:
        self.request = request
        self.accepted = accepted
        self.attempts = 0
        self.waiting = False
        self.owner: Owner | None = None
        self._done: Done | None = done

    @property
    def settled(self) -> bool:
        """Whether the request has left."""
        return self._done is None

    def settle(self, result: Result) -> bool:
        """Give the result to whoever waits; the first one counts, and the return value says whether this was it."""
        done = self._done
        if done is None:
            return False
        self._done = None
        done(result)
        return True

    def cancel(self) -> None:
        """The client is gone: a waiting request never reaches a replica, the answer of a running one is dropped."""
        gone = Cancelled("the client closed the connection before the answer was there")
        if self.settle(gone) and self.owner is not None:
            self.owner.cancelled(self)
