"""A real Redis of the tests' own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

REDIS = shutil.which("redis-server")


class RedisServer:
    """Starts, ends and starts again, with what it has written."""

    def __init__(self, folder: Path) -> None:
        if REDIS is None:
            pytest.skip("there is no redis-server on this machine")
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "appendonly": "yes"}
        options |= {"appendfsync": "always", "save": "", "logfile": self._folder / "redis.log"}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen([str(REDIS), *words], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(7) == b"+PONG\r\n":
                        return
            except OSError:
                pass
            assert time.monotonic() < end, "redis-server does not come up"
            assert self._process.poll() is None, "redis-server ended"
            time.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
