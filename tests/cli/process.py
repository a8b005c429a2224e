"""A real server process for tests: started, awaited, talked to and ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import psutil

PORTS = ("--port", "0", "--management-port", "0")
FORECASTLE = (str(Path(sys.executable).with_name("forecastle")), "serve", *PORTS)
PATIENCE = 60.0

SHIPPING = """
import json

def model_fn(model_dir):
    return lambda location: {"location": location, "weather": "Thundery showers."}

def input_fn(input_data, content_type):
    return json.loads(input_data)["location"]

def output_fn(prediction, accept):
    return json.dumps(prediction).encode(), "application/json"
"""


class Server:
    """A server process; ``table`` is what it printed before ``url`` and ``management`` became known."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by close()
        clean = {key: value for key, value in os.environ.items() if not key.startswith("FORECASTLE_")}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={
                **clean,
                "XDG_CACHE_HOME": str(folder / "cache"),
                "XDG_STATE_HOME": str(folder / "state"),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        self.table: list[str] = []
        self.url = self.management = ""

    def wait_ready(self) -> None:
        """Read the table; fail with the log if the process ends instead."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if match := re.fullmatch(r"ready on (http://\S+), management on (http://\S+)\n", line):
                self.url, self.management = match.groups()
                return
            self.table.append(line.rstrip("\n"))
        raise AssertionError(f"the server ended with {self.process.wait()}:\n{self.log}")

    @property
    def log(self) -> str:
        """All that the process and its replicas have written to stderr so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode()

    def replicas(self) -> list[psutil.Process]:
        """The processes that run below the server."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def post(self, path: str, body: bytes, content_type: str = "application/json") -> httpx.Response:
        """Send one body."""
        return httpx.post(f"{self.url}{path}", content=body, headers={"content-type": content_type}, timeout=PATIENCE)

    def signal(self, number: signal.Signals) -> None:
        """Send the server, and it alone, a signal."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for the process's end and return its exit code, which is minus the signal's number for a signal."""
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """End the process if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._stderr.close()


@contextlib.contextmanager
def starting(
    *arguments: str, folder: Path, command: Sequence[str] = FORECASTLE, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A server that has been started and may not be ready."""
    server = Server([*command, *arguments], folder, environment or {})
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def serving(
    *arguments: str, folder: Path, command: Sequence[str] = FORECASTLE, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A server that is ready."""
    with starting(*arguments, folder=folder, command=command, environment=environment) as server:
        server.wait_ready()
        yield server


def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds; fail after a while with what was waited for."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.01)


def all_gone(processes: Sequence[psutil.Process]) -> bool:
    """Whether none of the processes runs any more."""
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)
