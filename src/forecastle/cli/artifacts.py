"""From the models' sources to what their replicas start with: made in a thread, so that ``/ping`` is answered."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from forecastle.cluster.model_store import FIRST_VERSION
from forecastle.cluster.prepare import prepared
from forecastle.cluster.specs import ModelSpec
from forecastle.cluster.threads import in_thread
from forecastle.models import mar
from forecastle.models.artifact import Artifact
from forecastle.models.identity import identity
from forecastle.models.progress import Progress, silent

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}", re.ASCII)
"""What a version may be called; an archive that says another one keeps ours."""

Found = list[tuple[ModelSpec, Artifact]]


async def find(specs: Sequence[ModelSpec], cache: Path) -> Found:
    """Open each model's source and make its environment, in order; a terminal shows how far each step is.

    The thread that does the work does not hold up the process's end: who cancels this need not wait for a download.

    Raises:
        StartError: a source cannot be found, recognised or unpacked, or its requirements cannot be installed.
    """

    def work() -> Found:
        with shown() as progress:
            return [_open(spec, cache, progress) for spec in specs]

    return await in_thread(work)


def _open(spec: ModelSpec, cache: Path, progress: Progress) -> tuple[ModelSpec, Artifact]:
    # Replicas can import what lies in the working folder; a console script's process cannot by itself.
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)
    spec, artifact = prepared(spec, cache=cache, progress=progress)
    unsaid = artifact.runtime == mar.RUNTIME and spec.version == FIRST_VERSION
    version = identity(artifact).version if unsaid else ""
    return msgspec.structs.replace(spec, version=version) if _VERSION.fullmatch(version) else spec, artifact


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """Progress as bars on a terminal; elsewhere it would only fill the log."""
    if not sys.stderr.isatty():
        yield silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(activity: str, done: int, total: int | None) -> None:
            if activity not in tasks:
                tasks[activity] = bars.add_task(activity, total=total)
            bars.update(tasks[activity], completed=done, total=total)

        yield show


@contextlib.contextmanager
def waiting(activity: str) -> Iterator[None]:
    """A sign of life on a terminal while something takes as long as it takes."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(activity):
        yield
