"""What HTTP counts: replies by route, model and status class, errors by type, requests in flight."""

from __future__ import annotations


class HttpStats:
    """Plain counters, written on the event loop and rendered by ``http.metrics``.

    A route is a template of the route table or ``"other"``, a model is one that is served or ``""``: no client can make
    a new series.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.replies: dict[tuple[str, str, int], int] = {}
        self.errors: dict[tuple[str, str], int] = {}

    def count(self, route: str, model: str, status: int) -> None:
        """One reply was sent; it is kept by ``(route, model, status // 100)``."""
        key = (route, model, status // 100)
        self.replies[key] = self.replies.get(key, 0) + 1

    def count_error(self, route: str, type_: str) -> None:
        """That reply was an error of this type."""
        key = (route, type_)
        self.errors[key] = self.errors.get(key, 0) + 1
