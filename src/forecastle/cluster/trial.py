"""Trying a model: a process of its own loads it and ends, so that neither its code nor its memory is ours."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from forecastle.cluster.prepare import equipped
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import BadArtifact, LoadFailed, StartError
from forecastle.models.artifact import Artifact
from forecastle.models.export import PATIENCE
from forecastle.models.progress import Progress
from forecastle.models.trial import Task, Trial

_TAIL = 5


def try_as_served(name: str, artifact: Artifact, *, cache: Path, progress: Progress, patience: float) -> Trial:
    """Load a model as a server would: with the engine that suits it, and in its own environment if it needs one.

    Raises:
        InstallFailed: its environment cannot be made.
    """
    spec = ModelSpec(name, artifact.source)
    spec, artifact = equipped(spec, artifact, cache=cache, progress=progress)
    progress(f"loading {name}", 0, None)
    return try_model(artifact, python=spec.python, patience=patience)


def try_model(artifact: Artifact, *, python: str = "", derive: bool = False, patience: float = PATIENCE) -> Trial:
    """Load a model in a process of its own, as a replica does, and return what it is or why it cannot be loaded.

    ``python`` is the interpreter of its environment; empty for ours. With ``derive``, the model is an MMS archive
    without a signature, and its signature is the answer. Loading runs whatever code the model has.
    """
    command = [python or sys.executable, "-m", "forecastle.replica.trial"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:  # noqa: S603
        try:
            answer, said = process.communicate(msgspec.json.encode(Task(artifact, derive)), patience)
        except subprocess.TimeoutExpired:
            return Trial(error="LoadFailed", message=f"{artifact.source} was not loaded within {patience:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and with it what it has started
    try:
        return msgspec.json.decode(answer, type=Trial)
    except msgspec.DecodeError:
        tail = "\n".join(said.decode(errors="replace").splitlines()[-_TAIL:])
        message = f"{artifact.source}: the process that loaded it {_end(process.returncode)}"
        return Trial(error="LoadFailed", message=f"{message}\n{tail}".rstrip())


def failure(trial: Trial, origin: str) -> StartError:
    """Return the error of a trial that did not succeed; what a model's own code raised is told with its ``origin``."""
    if trial.error == "BadArtifact":
        return BadArtifact(trial.message)
    ours = trial.error == "LoadFailed"
    return LoadFailed(trial.message if ours else f"{origin} cannot be loaded: {trial.message}")


def _end(code: int) -> str:
    return f"ended with the code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
