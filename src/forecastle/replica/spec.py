"""What a replica is told at its start: one line of JSON on its standard input."""

from __future__ import annotations

import msgspec

from forecastle.models.artifact import Artifact


class ReplicaSpec(msgspec.Struct, frozen=True):
    """The model to load, and the descriptor of the listening socket that the replica inherits.

    ``batch_size`` is the most requests that it is given together, -1 for as many as pay.
    """

    model: str
    version: str
    artifact: Artifact
    listen_fd: int
    batch_size: int = -1
