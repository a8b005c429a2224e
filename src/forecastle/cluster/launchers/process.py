"""Replicas as child processes of the server: the default launcher."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import tempfile
from collections import deque
from pathlib import Path

import msgspec

from forecastle.cluster.specs import ModelSpec
from forecastle.models.artifact import Artifact
from forecastle.replica.spec import ReplicaSpec

logger = logging.getLogger("forecastle.replica")

LEVELS = {name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")}
TAIL_LINES = 20
LINE_LIMIT = 4096
START = "import sys; sys.path.pop(0); from forecastle.replica.process import main; sys.exit(main())"
"""What a replica's interpreter runs. The working folder leaves its path first: a file there that is called like a
module of Python's own would end every replica's start."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Numeric libraries would each start a thread per core in every replica; replicas are our way to use the cores."""


class ProcessReplica:
    """A running child: its pid, the address of its socket, the tail of what it printed, and its end."""

    def __init__(self, process: asyncio.subprocess.Process, address: Path, label: str) -> None:
        self.pid = process.pid
        self.address = address
        self._process = process
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._relay = asyncio.create_task(self._relay_output(label))

    @property
    def tail(self) -> str:
        """The last lines that the child printed."""
        return "\n".join(self._tail)

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it: if that was not ours, the kernel's, for want of memory."""
        return self._process.returncode == -signal.SIGKILL

    async def wait(self) -> str:
        """Wait for the child's end and say how it ended, once all it printed has been read."""
        code = await self._process.wait()
        self.kill()  # what it has started ends with it
        await asyncio.wait({self._relay}, timeout=1.0)
        if code >= 0:
            return f"it exited with code {code}"
        text = f"it was ended by {signal.Signals(-code).name}"
        return f"{text} (probably out of memory)" if -code == signal.SIGKILL else text

    def terminate(self) -> None:
        """Ask the child and what it started to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the child and what it started."""
        self._signal(signal.SIGKILL)

    def hide(self) -> None:
        """Remove the socket's file: once connected to, it is needed no more, and not even SIGKILL leaves it behind."""
        self.address.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.address.parent.rmdir()

    def close(self) -> None:
        """Clean up after the child's end."""
        self._relay.cancel()
        self.hide()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _relay_output(self, label: str) -> None:
        """Pass what the child prints to the log, line by line, and remember the last lines."""
        stream = self._process.stdout
        assert stream is not None
        level = logging.INFO
        while line := await _line(stream):
            text = line.decode(errors="replace").rstrip()
            self._tail.append(text)
            if not text.startswith(" "):  # what is indented belongs to the record before it
                level = LEVELS.get(text.partition(" ")[0], logging.INFO)
            logger.log(level, "%s | %s", label, text)


class ProcessLauncher:
    """Starts replicas as child processes. Each gets a process group, so that what it starts can be ended with it."""

    async def launch(self, spec: ModelSpec, index: int, artifact: Artifact) -> ProcessReplica:
        """Start a replica and return once it runs; it listens already, and loads its model once connected to."""
        folder = Path(tempfile.mkdtemp(prefix="forecastle-"))  # mode 0700, and a short path: a socket's has a limit
        address = folder / "replica.sock"
        try:
            return await self._launched(address, spec, index, artifact)
        except BaseException:
            address.unlink(missing_ok=True)
            folder.rmdir()  # noqa: ASYNC240 -- an empty folder of our own, at once
            raise

    async def _launched(self, address: Path, spec: ModelSpec, index: int, artifact: Artifact) -> ProcessReplica:
        label = f"{spec.name}#{index}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(address))
            address.chmod(0o600)  # noqa: ASYNC240
            listener.listen(8)
            process = await asyncio.create_subprocess_exec(
                spec.python or sys.executable,
                "-c",
                START,
                label,  # for whoever lists processes
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(listener.fileno(),),
                env=_environment(),
            )
            told = ReplicaSpec(spec.name, spec.version, artifact, listener.fileno(), spec.batch_size)
            assert process.stdin is not None
            # One that has ended already is seen to have by whoever waits for it.
            with contextlib.suppress(OSError, RuntimeError):
                process.stdin.write(msgspec.json.encode(told) + b"\n")
        # The pipe stays open for as long as we live: its end is how the replica learns of ours.
        return ProcessReplica(process, address, label)


def _environment() -> dict[str, str]:
    return {**dict.fromkeys(ONE_THREAD, "1"), **os.environ, "PYTHONUNBUFFERED": "1"}


async def _line(stream: asyncio.StreamReader) -> bytes:
    """Read a line, or as much of an endless one as the limit allows; empty at the end."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.read(min(error.consumed, LINE_LIMIT) or LINE_LIMIT)
