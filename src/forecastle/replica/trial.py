"""``python -m forecastle.replica.trial``: load one model as a replica does, say what it is, and end."""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback
from pathlib import Path

import msgspec

from forecastle.errors import ForecastleError
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature
from forecastle.models.trial import Task, Trial
from forecastle.replica.executor import HOOK_FAILURES
from forecastle.replica.loading import load_model
from forecastle.replica.process import forget_working_directory
from forecastle.runtimes.table import RUNTIMES, open_runtime


def main() -> int:
    """Answer the task on standard input on standard output; what the model prints goes to standard error."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    answer = os.dup(1)
    os.dup2(2, 1)
    if task.artifact.kind != "module":
        forget_working_directory()
    trial = run(task)
    sys.stdout.flush()
    with open(answer, "wb") as out:  # noqa: PTH123 -- a descriptor has no path
        out.write(msgspec.json.encode(trial))
    return 0


def run(task: Task) -> Trial:
    """Load the model; whatever its code raises is the answer too."""
    began = time.monotonic()
    try:
        if task.derive:
            return Trial(task.artifact.runtime, _derived(task.artifact), time.monotonic() - began)
        _, info = load_model(task.artifact)
    except HOOK_FAILURES as error:
        if isinstance(error, ForecastleError):
            missing = isinstance(error.__cause__, ModuleNotFoundError)
            return Trial(error=type(error).__name__, message=error.message, missing=missing)
        traceback.print_exc()
        missing = isinstance(error, ModuleNotFoundError)
        name = type(error).__name__
        return Trial(error=name, message=f"{name}: {error}".removesuffix(": "), missing=missing)
    return Trial(info.runtime, info.signature, time.monotonic() - began)


def _derived(artifact: Artifact) -> Signature:
    open_runtime(artifact)  # says what to install where something is missing
    module = importlib.import_module(f"{RUNTIMES[artifact.runtime]}.derive")
    signature: Signature = module.derive(Path(artifact.path), artifact.source)
    return signature


if __name__ == "__main__":
    sys.exit(main())
