from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from forecastle.cluster.processes import memory, started

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc")  # noqa: PTH110


def test_a_process_is_told_by_its_memory_and_start() -> None:
    # The name has blanks and a parenthesis, as it may.
    command = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) b 1 2'); print('up', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        held, began = memory(process.pid), started(process.pid)
        assert held is not None
        assert began is not None
        assert abs(held - psutil.Process(process.pid).memory_info().rss) < 4 << 20
        assert abs(began - time.time()) < 10
        process.communicate(b"\n")


def test_of_one_that_has_gone_nothing_is_known() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert (memory(process.pid), started(process.pid)) == (None, None)
