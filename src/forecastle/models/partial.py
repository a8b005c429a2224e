"""Where unfinished files lie: beside their goal, under a name that never counts, gone when the work ends."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forecastle.errors import StartError

_PREFIX = ".partial-"
# A killed process leaves its folder behind. No download or unpacking goes two days without making a file, so a folder
# that old has no owner.
_ABANDONED_AFTER = 2 * 24 * 3600.0


@contextmanager
def partial_directory(parent: Path) -> Iterator[Path]:
    """A new empty folder in ``parent``, which is made if need be; it is removed at the end, whatever happens.

    It lies on the same file system as ``parent``, so that what is finished can be renamed into place.

    Raises:
        StartError: in place of any ``OSError`` inside, all of which are about writing here.
    """
    path = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _sweep(parent)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        yield path
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StartError(f"cannot write under {parent}: {error.strerror or error}{where}") from None
    finally:
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)


def _sweep(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}*"):
        try:
            abandoned = path.stat().st_mtime < time.time() - _ABANDONED_AFTER
        except FileNotFoundError:  # its owner has just finished
            continue
        if abandoned:
            shutil.rmtree(path, ignore_errors=True)
