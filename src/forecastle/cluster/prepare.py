"""From a model's specification to what its replicas are started with: the artifact opened, the environment made."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from forecastle.cluster.environments import mxnet
from forecastle.cluster.environments.cache import interpreter
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import UsageError
from forecastle.models import mar
from forecastle.models.artifact import Artifact, open_artifact
from forecastle.models.engines import NATIVE, extra, needs_mxnet
from forecastle.models.progress import Progress, silent

logger = logging.getLogger(__name__)

INSTALLED = Artifact(kind="plugins", runtime="script", path="", source="the installed plugins")
"""The hook packages of the environment, which are one model."""


def prepared(spec: ModelSpec, *, cache: Path, progress: Progress = silent) -> tuple[ModelSpec, Artifact]:
    """Open the model's artifact and make its environment; blocks while it downloads, unpacks and installs.

    Returns the specification with the interpreter filled in where the model has requirements.

    Raises:
        StartError: the source cannot be found, recognised or unpacked, or its requirements cannot be installed.
    """
    artifact = (
        INSTALLED
        if spec.source is None
        else open_artifact(spec.source, cache=cache, progress=progress, handler=spec.service)
    )
    if spec.service:
        if artifact.runtime == "script":
            raise UsageError(f"{artifact.source} is a {artifact.kind}, which has its own hooks; leave the service out")
        artifact = msgspec.structs.replace(artifact, service=spec.service)
    return equipped(spec, artifact, cache=cache, progress=progress)


def equipped(
    spec: ModelSpec, artifact: Artifact, *, cache: Path, progress: Progress = silent
) -> tuple[ModelSpec, Artifact]:
    """Make the environment of a model whose artifact is open, and choose its engine; blocks while it installs.

    Raises:
        StartError: its requirements cannot be installed, or its network's file cannot be read.
    """
    wanted = [*spec.requirements, *([f"-r {artifact.requirements}"] if artifact.requirements else [])]
    reason = f"the engine is {spec.engine}" if spec.engine == "mxnet" else needs_mxnet(artifact)
    if reason and spec.engine != "onnx" and artifact.runtime in {"mxnet", mar.RUNTIME}:
        logger.info("the model %r is run by MXNet itself, in an environment that has it: %s", spec.name, reason)
        if artifact.runtime == "mxnet":
            artifact = msgspec.structs.replace(artifact, runtime=NATIVE)
        wanted = [*mxnet.requirements(), *wanted]
    if wanted:
        python = interpreter(wanted, extra(artifact), cache=cache, origin=repr(spec.name), progress=progress)
        spec = msgspec.structs.replace(spec, python=python)
    return spec, artifact
