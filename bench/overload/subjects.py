"""The servers: how each is started, asked, and understood."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import process
from bench.overload.cost import MOST
from forecastle.client.control import Control
from forecastle.cluster.environments.cache import interpreter

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "side"
START_SECONDS = 120.0


@dataclass(frozen=True)
class Subject:
    """One server under load. ``input`` makes the JSON of an input; ``is_good`` says whether a 200 is a prediction."""

    name: str
    command: Callable[[int, int], list[str]]
    path: str
    input: Callable[[int], object]
    is_good: Callable[[bytes], bool]
    setup: Callable[[int, float], None] = lambda *_: None

    def request(self, number: int) -> bytes:
        """Return the bytes of a request; no two ask the same, and every other one prefers a 503 to a default."""
        body = json.dumps({"input": self.input(number)}).encode()
        head = [f"POST {self.path} HTTP/1.1", "host: x", "content-type: application/json"]
        head += [f"content-length: {len(body)}", *(["prefer: default=no"] if number % 2 else [])]
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def subjects() -> list[Subject]:
    """Return the servers; those of the peers are installed into environments of their own when they are started."""
    return [
        Subject("Forecastle", _forecastle, "/app/predict", int, lambda body: b'"default":false' in body, _application),
        Subject("LitServe", _litserve, "/predict", int, lambda _: True),
        Subject("BentoML", _bentoml, "/predict", lambda number: [number], lambda _: True),
    ]


def peer(*requirements: str) -> str:
    """Return the Python of an environment that has these packages."""
    return interpreter(requirements, "script", cache=CACHE, origin="the benchmark")


@contextlib.contextmanager
def running(subject: Subject, slo: float, work: str) -> Iterator[int]:
    """Run a server, ready to be asked, and yield its port."""
    port, management = process.free_port(), process.free_port()
    environment = {**os.environ, "SLO_MS": str(round(1000 * slo)), "WORK": work, "BENTOML_DO_NOT_TRACK": "True"}
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as home:
        environment["BENTOML_HOME"] = home
        command = subject.command(port, management)
        started = subprocess.Popen(
            command, cwd=HERE, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            end = time.monotonic() + START_SECONDS
            if subject.name == "Forecastle":
                _wait(started, end, lambda: Control(f"http://127.0.0.1:{management}").status()["ready"])
                subject.setup(management, slo)
            _wait(started, end, lambda: _answers(port, subject))
            yield port
        except TimeoutError:
            log.seek(0)
            raise SystemExit(f"{subject.name} did not start:\n{log.read().decode()}") from None
        finally:
            process.end(started)


def _forecastle(port: int, management: int) -> list[str]:
    program = str(Path(sys.executable).with_name("forecastle"))
    ports = ["--port", str(port), "--management-port", str(management)]
    return [program, "serve", "cost=cost.py", "--store", "memory", *ports]


def _application(management: int, slo: float) -> None:
    application = {"name": "app", "input_type": "json", "default_output": "none", "models": ["cost"], "cache_bytes": 0}
    Control(f"http://127.0.0.1:{management}").register({**application, "slo_micros": round(1e6 * slo)})


def _litserve(port: int, _: int) -> list[str]:
    return [peer("litserve==0.2.17"), "litserve_server.py", str(port)]


def _bentoml(port: int, _: int) -> list[str]:
    python = peer("bentoml==1.4.30")
    return [python, "-m", "bentoml", "serve", "bentoml_server:Model", "--host", "127.0.0.1", "--port", str(port), "-q"]


def _wait(started: subprocess.Popen[bytes], end: float, ready: Callable[[], bool]) -> None:
    while True:
        with contextlib.suppress(Exception):
            if ready():
                return
        if time.monotonic() > end or started.poll() is not None:
            raise TimeoutError
        time.sleep(0.1)


def _answers(port: int, subject: Subject) -> bool:
    url = f"http://127.0.0.1:{port}{subject.path}"
    body = json.dumps({"input": subject.input(MOST)}).encode()
    asked = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=10) as reply:
        return bool(reply.status == 200)
