"""The frames between a frontend and a replica.

A frame is a prefix (magic, header length u32, payload length u64, little-endian), a header in msgpack, and the payloads
laid end to end, whose lengths stand in the header. Tensors and bodies are never packed into the header, so they are
copied as rarely as the socket allows. Times are budgets in seconds, not instants: the two ends may have two clocks.

A peer that breaks the format is not talked to again: the frontend replaces the replica, the replica ends.
"""

from __future__ import annotations

import struct

import msgspec

from forecastle.models.signature import Signature

MAGIC = b"FCS1"
PREFIX = struct.Struct("<4sIQ")
MAX_HEADER = 64 << 20
MAX_PAYLOAD = 16 << 30


class WireError(Exception):
    """The other end sent what is no frame."""


class Item(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One request of a batch: its parts as (name, content type, length), and what remains of its time in seconds.

    ``headers`` are the client's that hooks may see.
    """

    id: str
    parts: list[tuple[str, str, int]]
    accept: str
    budget: float
    headers: dict[str, str] = {}


class Batch(msgspec.Struct, tag="batch", array_like=True, frozen=True, gc=False):
    """Frontend to replica: requests to answer together. The payloads are the parts' bytes, item by item."""

    id: int
    items: list[Item]


class Outcome(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One item's end: an empty ``error`` and the content type, or an error's type and its message in ``text``.

    With ``more``, the body is the first piece of one that goes on in ``Piece`` frames up to an ``End``. ``headers`` are
    those that a hook answers with. ``status`` is that of HTTP where a hook chose it, else 0.
    """

    error: str
    text: str
    length: int
    more: bool = False
    headers: dict[str, str] = {}
    status: int = 0


class Answers(msgspec.Struct, tag="answers", array_like=True, frozen=True, gc=False):
    """Replica to frontend: one outcome for each item of the batch, in order, and the seconds the replica took."""

    batch: int
    outcomes: list[Outcome]
    seconds: float


class Piece(msgspec.Struct, tag="piece", array_like=True, frozen=True, gc=False):
    """Replica to frontend: the next piece of an item's body; the payload is the piece."""

    batch: int
    index: int


class End(msgspec.Struct, tag="end", array_like=True, frozen=True, gc=False):
    """Replica to frontend: an item's body is whole, or it never will be, for an error's type and its message."""

    batch: int
    index: int
    error: str = ""
    text: str = ""


class Cancel(msgspec.Struct, tag="cancel", array_like=True, frozen=True, gc=False):
    """Frontend to replica: nobody reads this item's body any more."""

    batch: int
    index: int


class Info(msgspec.Struct, frozen=True):
    """What a replica says of its model once it is loaded.

    ``together`` says whether a batch is predicted together; ``pings`` whether the model has a ``ping_fn`` of its own.
    """

    runtime: str
    signature: Signature | None
    batch_strategy: str
    max_concurrent_transforms: int
    max_payload_in_mb: int
    together: bool
    pings: bool


class Loading(msgspec.Struct, tag="loading", array_like=True, frozen=True):
    """Replica to frontend: the process is up and has begun to load its model."""


class Ready(msgspec.Struct, tag="ready", array_like=True, frozen=True):
    """Replica to frontend: the model is loaded."""

    info: Info


class Failed(msgspec.Struct, tag="failed", array_like=True, frozen=True):
    """Replica to frontend: the model cannot be loaded, for want of memory or another reason; the process ends."""

    reason: str
    memory: bool = False


class Ping(msgspec.Struct, tag="ping", array_like=True, frozen=True):
    """Frontend to replica: call ``ping_fn``."""


class Pong(msgspec.Struct, tag="pong", array_like=True, frozen=True):
    """Replica to frontend: what ``ping_fn`` said."""

    healthy: bool
    reason: str


ToReplica = Batch | Ping | Cancel
ToFrontend = Answers | Piece | End | Loading | Ready | Failed | Pong

_encoder = msgspec.msgpack.Encoder()
decode_to_replica = msgspec.msgpack.Decoder(ToReplica).decode
decode_to_frontend = msgspec.msgpack.Decoder(ToFrontend).decode


def frame(header: ToReplica | ToFrontend, payload_length: int = 0) -> bytes:
    """Return the prefix and the header; the payloads follow it on the socket."""
    encoded = _encoder.encode(header)
    return PREFIX.pack(MAGIC, len(encoded), payload_length) + encoded


def lengths(prefix: bytes | bytearray | memoryview, offset: int = 0) -> tuple[int, int]:
    """Read a prefix: the lengths of header and payload.

    Raises:
        WireError: it is no prefix, or it announces more than any frame holds.
    """
    magic, header, payload = PREFIX.unpack_from(prefix, offset)
    if magic != MAGIC:
        raise WireError(f"expected a frame, found {magic!r}")
    if header > MAX_HEADER or payload > MAX_PAYLOAD:
        raise WireError(f"a frame of {header} + {payload} bytes is over the limit")
    return header, payload
