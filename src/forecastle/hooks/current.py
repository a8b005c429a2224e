"""The request that a hook works on: what it may see of it besides the body, and the headers it may answer with."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forecastle.errors import BadOutput

_OWN_NAME = re.compile(r"[Xx]-[A-Za-z0-9-]{1,100}")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\x20-\x7e]{0,1024}")


class CurrentRequest:
    """One request, while ``input_fn``, ``predict_fn``, ``output_fn`` or ``transform_fn`` works on it.

    ``headers`` are the client's, by lower-case name: those that begin with ``x-``, SageMaker's custom attributes
    (``x-amzn-sagemaker-custom-attributes``) among them. ``status`` is that of the reply, 0 unless a handler chose it.
    """

    __slots__ = ("headers", "id", "reply_headers", "status")

    def __init__(self, id_: str, headers: Mapping[str, str]) -> None:
        self.id = id_
        self.headers = headers
        self.reply_headers: dict[str, str] = {}
        self.status = 0

    def set_header(self, name: str, value: str) -> None:
        """Answer with a header of one's own.

        Raises:
            BadOutput: the name does not begin with ``X-``, or the value is not up to 1024 visible ASCII characters.
        """
        if not _OWN_NAME.fullmatch(name):
            raise BadOutput(f"a hook set the header {name[:100]!r}; expected a name that begins with X-")
        check_header(name, value)
        self.reply_headers[name.lower()] = value


def check_header(name: str, value: str) -> None:
    """Refuse what cannot be a header of a reply.

    Raises:
        BadOutput: the name is none, or the value is not up to 1024 visible ASCII characters.
    """
    if not _NAME.fullmatch(name):
        raise BadOutput(f"a hook set the header {name[:100]!r}; expected a name of letters, digits and '-'")
    if not _VALUE.fullmatch(value):
        raise BadOutput(f"a hook set the header {name} to what it cannot hold: up to 1024 visible ASCII characters")


_NONE = CurrentRequest("", {})
_current = _NONE


def current_request() -> CurrentRequest:
    """Return the request that the calling hook works on.

    In ``predict_batch_fn``, which works on several, and outside of hooks it is an empty one.
    """
    return _current


def enter(request: CurrentRequest | None) -> None:
    """Say which request the hooks work on from now on: a replica works on one at a time, in one thread."""
    global _current  # noqa: PLW0603 -- one thread, one request at a time
    _current = _NONE if request is None else request
