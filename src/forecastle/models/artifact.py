"""The artifact: what a model is on disk, recognised by content."""

from __future__ import annotations

import msgspec


class Artifact(msgspec.Struct, frozen=True):
    """A recognised artifact.

    ``kind`` says what was found (for messages), ``runtime`` which module of ``forecastle.runtimes`` serves it, ``path``
    where it lies: a directory, a file, or for the kind ``module`` a dotted module name. ``source`` is what the user
    typed.
    """

    kind: str
    runtime: str
    path: str
    source: str
