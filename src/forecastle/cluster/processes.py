"""What the operating system knows of a replica's process; nothing where it has no ``/proc``."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_AFTER_NAME = 19
"""Where the start stands among the fields of ``/proc/PID/stat`` that follow the name; the name may hold blanks."""


def memory(pid: int) -> int | None:
    """Return the bytes of memory that a process holds."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return None


def started(pid: int) -> float | None:
    """Return when a process began, in seconds since 1970."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        lines = Path("/proc/stat").read_text("ascii", "replace").splitlines()
        boot = next((int(line.split()[1]) for line in lines if line.startswith("btime ")), None)
        if boot is not None:
            return boot + int(fields[_AFTER_NAME]) / os.sysconf("SC_CLK_TCK")
    return None
