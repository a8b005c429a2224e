"""A request on its way: what must be known of it in case it takes long."""

from __future__ import annotations

import asyncio
import time

from starlette.types import Receive

from forecastle.errors import DeadlineExceeded, Draining, RequestError
from forecastle.http.core import Ticket


class Exchange:
    """Bounds the reading of a body by the deadline, and cancels the ticket of a client that goes away.

    Both need help from the event loop, which is asked for only once the request is ``late``. ``deadline`` is monotonic;
    ``read`` is whether the whole body is there. Made in the task that answers the request.
    """

    __slots__ = ("_task", "_timer", "_watch", "deadline", "expired", "loop", "read", "receive", "ticket")

    def __init__(self, receive: Receive, deadline: float, loop: asyncio.AbstractEventLoop) -> None:
        self.receive = receive
        self.loop = loop
        self.deadline = deadline
        self.read = False
        self.expired = False
        self.ticket: Ticket | None = None
        self._task = asyncio.current_task(loop)
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None

    def late(self) -> None:
        """It was not over at once: arm what guards this part of it."""
        if self.ticket is not None:
            self._watch = asyncio.ensure_future(self._follow_client(self.ticket))
        elif self._timer is None:
            left = max(0.0, self.deadline - time.monotonic())
            self._timer = self.loop.call_later(left, self._expire)

    def submitted(self, ticket: Ticket) -> None:
        """The body was read, the answer is awaited."""
        self.ticket = ticket
        if self._timer is not None:  # reading was late: the guard changes, and nobody will say late again
            self._timer.cancel()
            self.late()

    def end(self) -> None:
        """The result is known: take down the guards."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def interrupted(self) -> RequestError:
        """The error that ends the request when its task was cancelled; the core hears of it."""
        if self.ticket is not None:
            self.ticket.cancel()
        if self.expired:
            return DeadlineExceeded(
                "the body did not arrive within the request's time: send it faster or raise --timeout"
            )
        return Draining("the server stopped before the answer was there", retry_after=1.0)

    def _expire(self) -> None:
        self.expired = True
        assert self._task is not None, "an exchange is made in a task"
        self._task.cancel()

    async def _follow_client(self, ticket: Ticket) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        ticket.cancel()
