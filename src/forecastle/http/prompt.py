"""A prediction request that came whole: answered from the parser's callback, without a task, a future or ASGI's dicts.

That is nearly every one: a small POST comes in one piece. All others go the long way through ASGI: bodies in several
pieces, ``Expect``, requests behind another one of their connection, clients that do not read what they are sent.
Answers in pieces begin here and go on there.
"""

from __future__ import annotations

import typing

from starlette.types import Scope

from forecastle.errors import Draining
from forecastle.http.contract import Contract
from forecastle.http.errors import Headers
from forecastle.http.predict import Predictions
from forecastle.http.reply import Pending, Reply


class PromptApp(typing.Protocol):
    """An ASGI application that also answers requests which came whole."""

    @property
    def predictions(self) -> Predictions:
        """What answers them."""

    def contract(self, path: str, scope: Scope) -> Contract | None:
        """Return the contract of a path under which predictions are made, and None for any other path."""


class Connection(typing.Protocol):
    """Where replies go."""

    def write(self, status: int, headers: Headers, body: bytes, *, keep_alive: bool) -> None:
        """Write a whole reply; the connection closes after it unless it is to be kept."""

    def stream(self, prompt: Prompt, reply: Reply) -> None:
        """Write a reply whose body comes in pieces."""


class Prompt:
    """One such request, from the end of its body to the reply; stands where uvicorn keeps the cycle of a request.

    Of that it has what uvicorn looks at: ``response_complete``, ``keep_alive`` (which it clears when the server stops),
    and ``disconnected`` with ``message_event.set()``, by which it says that the client has gone.
    """

    __slots__ = ("_connection", "_pending", "_predictions", "disconnected", "keep_alive", "response_complete")

    def __init__(self, connection: Connection, predictions: Predictions) -> None:
        self.response_complete = False
        self.disconnected = False
        self.keep_alive = True
        self._connection = connection
        self._predictions = predictions
        self._pending: Pending | None = None

    @property
    def message_event(self) -> Prompt:
        """What is told that the client has gone."""
        return self

    def set(self) -> None:
        """Cancel the request of a client that has gone."""
        if self.disconnected and not self.response_complete and self._pending is not None:
            self._pending.cancel()

    def start(self, contract: Contract, scope: Scope, body: bytes) -> None:
        """Answer; the reply may be written before this returns."""
        self._pending = self._predictions.at_once(contract, scope, body, self._answer)

    def interrupt(self) -> None:
        """End it because the server stops."""
        if not self.response_complete and self._pending is not None:
            self.keep_alive = False
            self._pending.instead = Draining("the server stopped before the answer was there", retry_after=1.0)
            self._pending.cancel()

    def _answer(self, reply: Reply) -> None:
        self.response_complete = True
        if reply.rest is not None:
            self._connection.stream(self, reply)
        elif not self.disconnected:
            self._connection.write(reply.status, reply.headers, reply.body, keep_alive=self.keep_alive)
