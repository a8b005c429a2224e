"""A server under measurement: started, waited for, weighed and ended with all it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from bench.workloads import ROOT, Workload

START_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    """A running server. ``cold_start`` is the seconds from its launch to its first answer, ``answer`` that answer."""

    pid: int
    url: str
    cold_start: float
    answer: bytes

    def cpu_seconds(self) -> float:
        """Processor seconds that the server and its children have used."""
        times = [process.cpu_times() for process in _tree(self.pid)]
        return sum(time.user + time.system for time in times)

    def megabytes(self) -> float:
        """Memory of the server and its children, shared pages counted once between them (PSS)."""
        return sum(process.memory_full_info().pss for process in _tree(self.pid)) / 1e6


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def forecastle(workload: Workload, port: int) -> list[str]:
    """Return the command that serves a workload."""
    program = str(Path(sys.executable).with_name("forecastle"))
    model = f"{workload.name}={workload.source}"
    ports = ["--port", str(port), "--management-port", str(free_port())]
    return [program, "serve", model, *ports, "--replicas", str(workload.replicas), "--log-level", "warning"]


def plain(module: str, port: int) -> list[str]:
    """Return the command of a server in ``bench.servers``."""
    return [sys.executable, "-m", f"bench.servers.{module}", str(port)]


@contextlib.contextmanager
def running(command: Sequence[str], port: int, workload: Workload) -> Iterator[Server]:
    """Run a server until the block ends; it is there once it has answered the workload's request with 200."""
    with tempfile.TemporaryFile() as log:
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            answer = _first_answer(process, f"{url}{workload.path}", workload)
            if answer is None:
                log.seek(0)
                raise SystemExit(f"{' '.join(command)} did not answer:\n{log.read().decode()}")
            yield Server(process.pid, url, time.monotonic() - began, answer)
        finally:
            end(process)


def _first_answer(process: subprocess.Popen[bytes], url: str, workload: Workload) -> bytes | None:
    headers = {"content-type": workload.content_type}
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            reply = httpx.post(url, content=workload.body, headers=headers)
            if reply.status_code == 200:
                return reply.content
        time.sleep(0.005)
    return None


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server, and all that it has started."""
    children = _tree(process.pid)
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    _, alive = psutil.wait_procs([child for child in children if child.pid != process.pid], timeout=5)
    for child in alive:
        child.kill()


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
