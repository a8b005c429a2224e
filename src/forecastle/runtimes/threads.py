"""How many threads one replica computes with."""

from __future__ import annotations

import os

from forecastle.errors import LoadFailed

THREADS = "FORECASTLE_THREADS"
"""The environment variable for the threads of one replica: 1 unless set, since replicas are how the cores are used."""


def threads() -> int:
    """Return the number of threads.

    Raises:
        LoadFailed: ``FORECASTLE_THREADS`` is no number of threads.
    """
    value = os.environ.get(THREADS, "1")
    if value.isascii() and value.isdigit() and int(value) > 0:
        return int(value)
    raise LoadFailed(f"{THREADS} is {value!r}; expected a number of threads, 1 or more")
