"""From the models' sources to what their replicas start with: made in a thread, so that ``/ping`` is answered."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from forecastle.cluster.prepare import prepared
from forecastle.cluster.specs import ModelSpec
from forecastle.models.artifact import Artifact
from forecastle.models.progress import Progress, silent

Found = list[tuple[ModelSpec, Artifact]]


async def find(specs: Sequence[ModelSpec], cache: Path) -> Found:
    """Open each model's source and make its environment, in order; a terminal shows how far each step is.

    The thread that does the work does not hold up the process's end: who cancels this need not wait for a download.

    Raises:
        StartError: a source cannot be found, recognised or unpacked, or its requirements cannot be installed.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Found] = loop.create_future()

    def settle(result: Found | Exception) -> None:
        if found.done():
            return
        if isinstance(result, Exception):
            found.set_exception(result)
        else:
            found.set_result(result)

    def work() -> None:
        try:
            with shown() as progress:
                result: Found | Exception = [_open(spec, cache, progress) for spec in specs]
        except Exception as error:  # noqa: BLE001 -- raised again where the result is awaited
            result = error
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the wish to know
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=work, name="artifacts", daemon=True).start()
    return await found


def _open(spec: ModelSpec, cache: Path, progress: Progress) -> tuple[ModelSpec, Artifact]:
    # Replicas can import what lies in the working folder; a console script's process cannot by itself.
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)
    return prepared(spec, cache=cache, progress=progress)


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
