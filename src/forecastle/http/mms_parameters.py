"""The parameters of MMS 1.x's management API: in the query, or as a JSON object in the body."""

from __future__ import annotations

import ast
from typing import Any

import msgspec
from starlette.requests import Request

from forecastle.errors import BadInput
from forecastle.http.body import read_body

_BODY = 1 << 20
_LARGEST = 1 << 31


class Parameters:
    """The parameters of one request; a value is text or JSON's, and ``'1'`` is a number where one is expected."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def text(self, key: str) -> str:
        """Return a text, empty where it was not sent.

        Raises:
            BadInput: it is no text.
        """
        value = self._values.get(key, "")
        if not isinstance(value, str):
            raise BadInput(f"Parameter {key} is {value!r}: it must be a text")
        return value.strip()

    def count(self, key: str, default: int, *, least: int = 0) -> int:
        """Return a whole number.

        Raises:
            BadInput: it is none, or less than the ``least``.
        """
        value = self._values.get(key, default)
        try:
            found = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
        except ValueError:
            found = None
        if found is None or not least <= found < _LARGEST:
            raise BadInput(f"Parameter {key} is {str(value)[:100]!r}: it must be a whole number, {least} or more")
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        """Return whether something is wanted.

        Raises:
            BadInput: it is neither true nor false.
        """
        value = self._values.get(key, default)
        found = {"true": True, "false": False}.get(str(value).strip().lower())
        if found is None:
            raise BadInput(f"Parameter {key} is {str(value)[:100]!r}: it must be true or false")
        return found

    def __contains__(self, key: str) -> bool:
        """Whether it was sent, and is not empty."""
        value = self._values.get(key)
        return value is not None and value != ""


async def parameters(request: Request) -> Parameters:
    """Read the parameters of a request; those of the query go before those of the body.

    Raises:
        BadInput: the body is called JSON, and is no object.
    """
    values: dict[str, Any] = {}
    body = await read_body(request.receive, _BODY)
    if body.strip() and request.headers.get("content-type", "").startswith("application/json"):
        values = _object(body)
    return Parameters({**values, **dict(request.query_params)})


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        found = _literal(body)
        if found is None:
            raise BadInput(f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput('the body must be a JSON object like {"url": …}')
    return found


def _literal(body: bytes) -> Any:
    """Return what Python reads in it, since MMS takes single quotes too; nothing where that is none."""
    try:
        return ast.literal_eval(body.decode().strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
