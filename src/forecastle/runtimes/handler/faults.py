"""What a handler raises to end a request with a status of its own, and what is said of what else it may do."""

from __future__ import annotations

from typing import Any

from forecastle.errors import PredictionFailed

FAILED = 503
"""The status of a request whose handler failed, by the contract of MMS 1.x."""

_FIRST, _LAST = 400, 599


class PredictionException(Exception):
    """Raised by a handler: the request, or each of its batch, fails with this message and status."""

    def __init__(self, message: str, error_code: Any = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __str__(self) -> str:
        return f"{self.message} : {self.error_code}"


def chosen(error: PredictionException, handler: str) -> PredictionFailed:
    """Return what the client is told of an exception that a handler raised on purpose."""
    code = error.error_code
    if isinstance(code, int) and _FIRST <= code <= _LAST:
        return PredictionFailed(str(error.message), status=code)
    return PredictionFailed(
        f"{error.message} (the handler {handler} gave the status {code!r}; expected {_FIRST} to {_LAST})", status=500
    )


def raised(error: Exception, handler: str) -> PredictionFailed:
    """Return what the client is told of any other exception."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return PredictionFailed(f"Prediction failed: the handler {handler} raised {text}", status=FAILED)


def checked(output: Any, count: int, handler: str) -> list[Any]:
    """Return what a handler gave for a batch of so many requests.

    Raises:
        PredictionFailed: it is no list, or of another length.
    """
    if not isinstance(output, list):
        found = type(output).__name__
        text = f"Invalid model predict output: the handler {handler} returned {found}; expected a list of {count}"
        raise PredictionFailed(text, status=FAILED)
    if len(output) != count:
        raise PredictionFailed(
            f"number of batch response mismatched: the handler {handler} was given {count} and returned {len(output)}",
            status=FAILED,
        )
    return output
