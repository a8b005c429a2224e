"""What a model is called by its own archive."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from forecastle.models import mar
from forecastle.models.artifact import Artifact
from forecastle.models.services import read_manifest

LEGACY = "snapshot"
"""The version of an archive whose manifest, of MMS 0.x, has none."""


class Identity(NamedTuple):
    """The name and version that an archive says it has; either is empty where it says none."""

    name: str
    version: str


def identity(artifact: Artifact) -> Identity:
    """Return what the manifest of an artifact calls it.

    Raises:
        BadArtifact: the manifest is broken.
    """
    directory = Path(artifact.path)
    if artifact.runtime == mar.RUNTIME and mar.is_mar(directory):
        said = mar.read_mar(directory, artifact.source)
        return Identity(said.name, said.version)
    described = read_manifest(directory).get("Model")
    name = described.get("Model-Name") if isinstance(described, dict) else None
    return Identity(name, LEGACY) if isinstance(name, str) and name else Identity("", "")
