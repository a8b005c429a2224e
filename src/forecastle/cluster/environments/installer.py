"""uv, as we run it: bounded, ended with us, and quoted where it fails."""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import uv

from forecastle.errors import InstallFailed

LIMIT_SECONDS = 3600.0
"""How long one run may take; uv itself gives up on a connection that is silent for half a minute."""

_TAIL = 25


class Result:
    """How a run of uv ended, and what it said."""

    def __init__(self, code: int, said: str) -> None:
        self.code = code
        self.said = said


def run(arguments: Sequence[str], folder: Path | None = None, watch: Callable[[str], None] | None = None) -> Result:
    """Run uv to its end; ``watch`` is told each line that it prints on the way.

    The interpreters of this machine are used as they are, none is downloaded; uv's own variables (UV_INDEX_URL,
    UV_OFFLINE, UV_FIND_LINKS …) hold.

    Raises:
        InstallFailed: there is no uv.
    """
    environment = {"UV_PYTHON_DOWNLOADS": "never", **os.environ, "NO_COLOR": "1"}
    try:
        process = subprocess.Popen(  # noqa: S603 -- a list of words, and no shell
            [uv.find_uv_bin(), "--no-progress", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise InstallFailed(f"uv, which makes environments, cannot be started: {error}") from None
    atexit.register(process.kill)  # the thread that runs this may be left behind when the server ends
    late = threading.Timer(LIMIT_SECONDS, process.kill)
    late.daemon = True
    late.start()
    lines: deque[str] = deque(maxlen=_TAIL)
    try:
        with process:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(line.rstrip())
                if watch is not None:
                    watch(line.strip())
        code = process.wait()
    finally:
        late.cancel()
        atexit.unregister(process.kill)
    return Result(code, "\n".join(lines).strip())
