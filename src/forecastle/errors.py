"""The error tree, drawn along the path of a request.

Every failure a user can cause or meet is one of these classes. Its *name* is the stable ``type`` a client may switch
on, its ``status`` is the HTTP status, its message names the thing, the limit and the setting to change. It never holds
a traceback, a path of the server or another client's data.

::

    ForecastleError
    ├── StartError                    before serving: the start ends, exit code 2 or 1
    │   ├── UsageError                a flag, an environment variable, a key of the file
    │   ├── SourceNotFound            nothing lies at the path or URL
    │   ├── UnknownArtifact           what lies there is no model we recognise
    │   ├── BadArtifact               it is one, but broken, unsafe or inconsistent
    │   ├── InstallFailed             its requirements could not be installed
    │   ├── GenerationFailed          a client's package could not be generated
    │   ├── ServerNotFound            no server answers where a command looks for one
    │   ├── RequestRefused            a running server has refused what a command asked for
    │   ├── LoadFailed                the replica could not load it
    │   └── AddressInUse              the port is taken
    └── RequestError                  one request, at the step where it is raised
        ├── NotFound            404   route: no such path
        ├── ModelNotFound       404   route: no model of that name
        ├── ApplicationNotFound 404   route or management: no application of that name
        ├── AlreadyServed       409   management: a model of this name is there
        ├── Conflict            409   management: it contradicts what is registered
        ├── StoreFailed         503   management: what is registered cannot be read or changed now
        ├── NotLoaded           500   management: the model cannot be loaded
        ├── ForeignPage         403   management: a web page asks for a change
        ├── MethodNotAllowed    405   route: the path exists, the method does not
        ├── SlowRequest         408   read: its head did not arrive in time
        ├── PayloadTooLarge     413   read: the body is over ``max_body``
        ├── Draining            503   accept: the server is stopping
        ├── Overloaded          503   queue: it is full
        ├── NoReplica           503   queue: no replica came back in time
        ├── DeadlineExceeded    504   queue, batch or replica: the deadline has passed
        ├── Cancelled           499   anywhere: the client has gone
        ├── ReplicaDied         503   replica: the process ended with this request in it, twice
        ├── UnsupportedMediaType 415  input_fn: this content type cannot be read
        ├── BadInput            400   input_fn: it was read, and is wrong
        ├── PredictionFailed    500   predict_fn or another hook raised
        ├── OutOfMemory         507   a hook, or the loading of a model: the memory does not suffice
        ├── BadOutput           500   the hook returned what cannot be sent
        └── NotAcceptable       406   output_fn: nothing the client accepts can be written

Hooks may raise any ``RequestError``; it reaches the client with its status.
"""

from __future__ import annotations

from typing import ClassVar


class ForecastleError(Exception):
    """The root. Catch it to catch everything Forecastle raises on purpose."""

    status: int = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def type(self) -> str:
        """The class name: what the JSON error calls ``type``."""
        return type(self).__name__


class StartError(ForecastleError):
    """The server cannot start, or a command cannot do its work; ``exit_code`` ends the process."""

    exit_code: ClassVar[int] = 1


class UsageError(StartError):
    """A flag, an environment variable or a key of the file is wrong."""

    exit_code = 2


class SourceNotFound(StartError):
    """Nothing lies at the path or URL that was given."""


class UnknownArtifact(StartError):
    """Something lies there, but no runtime recognises it."""


class BadArtifact(StartError):
    """A recognised artifact that is broken, unsafe to unpack or contradicts itself."""


class InstallFailed(StartError):
    """The requirements of a model could not be installed; the message ends with what the installer said."""


class GenerationFailed(StartError):
    """A client's package could not be generated; the message ends with what the generator said."""


class ServerNotFound(StartError):
    """No server answers where a command looks for one."""


class RequestRefused(StartError):
    """A running server has refused what a command asked for; the message is the server's own."""


class LoadFailed(StartError):
    """A replica could not load its model; the message ends with the tail of the replica's output.

    ``memory`` says that it ran out of memory, as far as can be told.
    """

    def __init__(self, message: str, *, memory: bool = False) -> None:
        super().__init__(message)
        self.memory = memory


class AddressInUse(StartError):
    """The host and port to listen on are taken."""


class RequestError(ForecastleError):
    """One request fails; the server goes on.

    ``retry_after`` is in seconds and becomes the ``Retry-After`` header where it is set.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotFound(RequestError):
    """No route has this path."""

    status = 404


class ModelNotFound(RequestError):
    """No model of this name is served."""

    status = 404


class ApplicationNotFound(RequestError):
    """No application of this name is registered."""

    status = 404


class Conflict(RequestError):
    """A change contradicts what is registered."""

    status = 409


class StoreFailed(RequestError):
    """The store of what is registered cannot be reached."""

    status = 503


class AlreadyServed(RequestError):
    """A model of this name is served already."""

    status = 409


class NotLoaded(RequestError):
    """A model that was to be served while the server runs cannot be loaded."""

    status = 500


class OutOfMemory(RequestError):
    """The memory does not suffice for a model, or for a prediction."""

    status = 507


class ForeignPage(RequestError):
    """A web page asks for a change of what is served."""

    status = 403


class MethodNotAllowed(RequestError):
    """The path exists, but not with this method. ``allowed`` becomes the ``Allow`` header."""

    status = 405

    def __init__(self, message: str, *, allowed: str = "") -> None:
        super().__init__(message)
        self.allowed = allowed


class SlowRequest(RequestError):
    """The head of a request did not arrive in time; the connection closes."""

    status = 408


class PayloadTooLarge(RequestError):
    """The body is larger than ``max_body``."""

    status = 413


class Draining(RequestError):
    """The server is stopping and takes nothing new."""

    status = 503


class Overloaded(RequestError):
    """The model's queue is full."""

    status = 503


class NoReplica(RequestError):
    """No replica of the model is ready, and none came back in time."""

    status = 503


class ReplicaDied(RequestError):
    """The replica's process ended while this request was in it, and the second try ended likewise."""

    status = 503


class DeadlineExceeded(RequestError):
    """The request's deadline passed before its answer was there."""

    status = 504


class Cancelled(RequestError):
    """The client went away; nobody reads this answer."""

    status = 499


class UnsupportedMediaType(RequestError):
    """``input_fn`` cannot read this content type; the message lists those it can."""

    status = 415


class BadInput(RequestError):
    """The input could be read and is wrong; the message names the field and what was expected."""

    status = 400


class PredictionFailed(RequestError):
    """A hook raised; the message is the exception's class and text, the traceback is in the log.

    The code of a handler may end its request with a ``status`` of its own.
    """

    status = 500

    def __init__(self, message: str, *, status: int = 500, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.status = status


class BadOutput(RequestError):
    """A hook returned something of the wrong type or count."""

    status = 500


class NotAcceptable(RequestError):
    """Nothing the prediction can be written as is acceptable to the client."""

    status = 406


def _tree(root: type[RequestError]) -> dict[str, type[RequestError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found |= _tree(child)
    return found


_BY_TYPE = _tree(RequestError)


def from_wire(type_: str, message: str, status: int = 0) -> RequestError:
    """Rebuild the error a replica reported by its type; an unknown type is a ``PredictionFailed``.

    A ``status`` of its own goes before that of its type.
    """
    error = _BY_TYPE.get(type_, PredictionFailed)(message)
    if status:
        error.status = status
    return error
