"""No orphans: a replica ends when the process that started it does, however that one ended.

The server holds the write end of the replica's standard input. When it dies, even by SIGKILL, the kernel closes that
end, and a thread that waits on it here ends the replica and everything the replica has started. On Linux the kernel is
also asked to kill the replica with its parent, for the case that native code holds the interpreter lock and the thread
cannot run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def hold(fd: int) -> None:
    """Tie this process to the pipe ``fd``: once its other end closes, the process group is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_wait, args=(fd,), name="lifeline", daemon=True).start()


def _wait(fd: int) -> None:
    while os.read(fd, 1024):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)
