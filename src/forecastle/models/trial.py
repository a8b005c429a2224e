"""A trial: a process of its own loads a model, says what it found, and ends. What is asked, and what is answered."""

from __future__ import annotations

import msgspec

from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature


class Task(msgspec.Struct, frozen=True):
    """What to load; with ``derive``, only to tell the signature of an MMS archive that has none."""

    artifact: Artifact
    derive: bool = False


class Trial(msgspec.Struct, frozen=True):
    """What became of it.

    ``signature`` is what the model itself takes and gives, as far as its runtime knows. Where it could not be loaded,
    ``error`` is the type of the error and ``message`` the reason; ``missing`` says that a package is not installed.
    """

    runtime: str = ""
    signature: Signature | None = None
    seconds: float = 0.0
    error: str = ""
    message: str = ""
    missing: bool = False
