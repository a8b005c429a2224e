"""Sending bodies that are made while they are sent: a piece of each in turn, until all are whole or cancelled."""

from __future__ import annotations

from collections.abc import Iterator

from forecastle.errors import RequestError
from forecastle.replica.channel import Channel
from forecastle.replica.wire import End, Piece


def stream(channel: Channel, batch: int, bodies: dict[int, Iterator[bytes | RequestError]]) -> None:
    """Send what is left of a batch's bodies, by the index of their items.

    Between pieces it looks whether one was cancelled: what makes it is closed, so that a generator's ``finally`` runs.
    A client that reads slowly holds up the sending, and thereby the making.
    """
    while bodies:
        for index, rest in list(bodies.items()):
            for cancelled in channel.cancelled():
                if cancelled.batch == batch and (gone := bodies.pop(cancelled.index, None)) is not None:
                    _close(gone)
                    channel.send(End(batch, cancelled.index))
            if index not in bodies:
                continue
            piece = next(rest, None)
            if isinstance(piece, bytes):
                channel.send(Piece(batch, index), [piece])
                continue
            del bodies[index]
            channel.send(End(batch, index) if piece is None else End(batch, index, piece.type, piece.message))


def _close(rest: Iterator[bytes | RequestError]) -> None:
    close = getattr(rest, "close", None)
    if close is not None:
        close()
