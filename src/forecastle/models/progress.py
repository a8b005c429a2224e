"""How slow steps tell how far they are."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then from the thread that does the work; it must be quick and must not raise."""

    def __call__(self, activity: str, done: int, total: int | None) -> None:
        """``activity`` names the step ("downloading x.zip"), ``done`` of ``total`` bytes, ``None`` if unknown."""


def silent(activity: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""
