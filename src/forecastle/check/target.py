"""What is checked: a server that runs already, or one that is started here as the platform would, and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from forecastle.check.client import NoAnswer, request
from forecastle.errors import StartError

POLL_SECONDS = 0.05
OURS, CACHE = "FORECASTLE_", "FORECASTLE_CACHE_DIR"
AS_FIRST = ("unshare", "--fork", "--pid", "--kill-child")
"""Runs a command as the first process of a namespace of its own, as a container's is: signals that it does not handle
have no effect on it, and it inherits orphans."""


class Target(Protocol):
    """A server under check."""

    url: str
    starts: bool
    """Whether we start it, and so may stop it."""
    first: bool
    """Whether it runs as the first process, as in a container."""

    def early(self) -> list[int]:
        """What ``/ping`` said before it first said 200: statuses, 0 for no answer."""

    def stop(self) -> tuple[int | None, float]:
        """Send SIGTERM; return the exit code (``None``: it had to be killed) and the seconds it took."""

    def tail(self) -> str:
        """The last lines that it printed."""


class Running:
    """A server that somebody else started."""

    starts = False
    first = False

    def __init__(self, url: str) -> None:
        self.url = url

    def early(self) -> list[int]:
        """Nothing was seen of its start."""
        return []

    def stop(self) -> tuple[int | None, float]:
        """It is not ours to stop."""
        raise AssertionError("a server that we did not start is not stopped")

    def tail(self) -> str:
        """What it prints is not ours to see."""
        return ""


class Started:
    """A server in a process of ours, on a port that the platform's variable names."""

    starts = True

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], patience: float, *, first: bool) -> None:
        port = _free_port()
        self.first = first
        self.url = f"http://127.0.0.1:{port}"
        self._patience = patience
        self._early: list[int] = []
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by close()
        # The settings of whoever checks are not the platform's; what is cached may be used.
        own = {key: text for key, text in os.environ.items() if not key.startswith(OURS) or key == CACHE}
        variables = {**own, "SAGEMAKER_BIND_TO_PORT": str(port), **environment}
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- what the user named
                [*(AS_FIRST if first else ()), *(word.replace("{port}", str(port)) for word in command)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"{command[0]!r} cannot be started: {error.strerror}") from None

    def wait(self) -> None:
        """Wait until ``/ping`` is 200.

        Raises:
            StartError: the process ended, or the time is over; the message has what it printed last.
        """
        end = time.monotonic() + self._patience
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise StartError(f"the server ended with {self._process.returncode}:\n{self.tail()}")
            try:
                status = request(self.url, "GET", "/ping", timeout=2.0).status
            except NoAnswer:
                status = 0
            if status == 200:
                return
            self._early.append(status)
            time.sleep(POLL_SECONDS)
        raise StartError(f"/ping was not 200 within {self._patience:g} s:\n{self.tail()}")

    def early(self) -> list[int]:
        """What ``/ping`` said before it first said 200."""
        return self._early

    def stop(self) -> tuple[int | None, float]:
        """Send SIGTERM to the one process, as an engine does, and wait for its end."""
        began = time.monotonic()
        os.kill(self._inner() if self.first else self._process.pid, signal.SIGTERM)
        try:
            return self._process.wait(30.0), time.monotonic() - began
        except subprocess.TimeoutExpired:
            return None, time.monotonic() - began

    def _inner(self) -> int:
        """The process that is the first one inside."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text(encoding="ascii")
        return int(children.split()[0])

    def tail(self) -> str:
        """The last lines that it printed."""
        self._output.seek(0)
        return "\n".join(self._output.read().decode(errors="replace").splitlines()[-15:])

    def close(self) -> None:
        """End it, and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()


@contextlib.contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], patience: float, *, first: bool = False
) -> Iterator[Started]:
    """A server that is ready; it is gone afterwards, whatever happens.

    ``first`` runs it as the first process of a namespace, which ``may_be_first`` says is possible.

    A word ``{port}`` of the command becomes the port, for a program that does not know the platform's variable.

    Raises:
        StartError: it cannot be started, or is not ready in time.
    """
    server = Started(command, environment, patience, first=first)
    try:
        server.wait()
        yield server
    finally:
        server.close()


def may_be_first() -> bool:
    """Say whether this user may run a command as the first process of a namespace."""
    try:
        return subprocess.run([*AS_FIRST, "true"], capture_output=True, check=False, timeout=10).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False


def image_command(image: str, name: str, model_dir: Path | None, variables: Mapping[str, str]) -> list[str]:
    """Return the command that runs an image as the platform does: argument ``serve``, the model read-only."""
    command = ["docker", "run", "--rm", "--name", name, "--publish", "127.0.0.1:{port}:{port}"]
    command += ["--env", "SAGEMAKER_BIND_TO_PORT={port}"]
    for key, value in variables.items():
        command += ["--env", f"{key}={value}"]
    if model_dir is not None:
        command += ["--volume", f"{model_dir.absolute()}:/opt/ml/model:ro"]
    return [*command, image, "serve"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
