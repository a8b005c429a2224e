"""A serving core without replicas and a server in a thread, for the tests of ``forecastle.http``.

It lies beside ``tests/http`` and not in it: a module there would be named like the standard library's ``http``.
"""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

import uvloop
from starlette.types import ASGIApp

from forecastle.errors import ModelNotFound
from forecastle.http.server import HttpServer
from forecastle.messages import Request, Response
from forecastle.serving.router import ModelInfo, ReplicaStatus
from forecastle.serving.stats import ModelStats
from forecastle.serving.ticket import Result, Ticket

T = TypeVar("T")

WAIT = 20.0


class MemoryModel:
    """A served model whose state is whatever a test says."""

    def __init__(self, name: str, *states: str) -> None:
        replicas = [ReplicaStatus(i, state) for i, state in enumerate(states or ("ready",))]
        self.info = ModelInfo(name, "1", True, "script", None, "SingleRecord", 3, 7, replicas)
        self.stats = ModelStats()
        self.generation = 0
        self.waiting = self.running = 0

    def describe(self) -> ModelInfo:
        return self.info


def echo(request: Request) -> Result | None:
    """Answer with the first part, as JSON."""
    return Response(request.parts[0].data, "application/json")


class MemoryCore:
    """Answers with ``answer(request)`` at once; where that is None the ticket waits for the test to settle it."""

    def __init__(self, *names: str) -> None:
        self.models = {name: MemoryModel(name) for name in names}
        self.answer: Callable[[Request], Result | None] = echo
        self.tickets: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self.reasons: list[str] = []

    def submit(self, request: Request, done: Callable[[Result], None]) -> Ticket:
        def report(result: Result) -> None:
            done(result)
            self.results.put(result)

        ticket = Ticket(request, report, 0.0)
        result = self.answer(request)
        if result is not None:
            ticket.settle(result)
        self.tickets.put(ticket)
        return ticket

    def find(self, name: str, version: str = "") -> MemoryModel | None:
        return self.versions.get((name, version)) if version else self.models.get(name)

    @property
    def versions(self) -> dict[tuple[str, str], MemoryModel]:
        return {(name, model.info.version): model for name, model in self.models.items()}

    def unknown(self, name: str, version: str = "") -> ModelNotFound:
        return ModelNotFound(f"no model {name!r} is served; served: {', '.join(sorted(self.models))}")

    def troubles(self) -> list[str]:
        return self.reasons

    async def check(self) -> list[str]:
        return self.reasons

    def taken(self) -> Ticket:
        """The next request that reached the core."""
        return self.tickets.get(timeout=WAIT)


class Running:
    """A server that runs in a thread."""

    def __init__(self, server: HttpServer, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.port = server.port
        self.url = f"http://127.0.0.1:{server.port}"
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine on the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Callable[[], T]) -> T:
        """Call a function on the server's loop and return its result."""

        async def call() -> T:
            return work()

        return self.run(call())

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a connection that speaks bytes, and close it."""
        connection = Connection(self.port)
        try:
            yield connection
        finally:
            connection.close()


class Connection:
    """A client that sends what it is told to, well-formed or not."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        self._read = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def post(self, path: str, body: bytes, *headers: str) -> None:
        """Send a request with its Content-Length."""
        lines = [f"POST {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *headers]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def reply(self, *, body: bool = True) -> tuple[int, dict[str, str], bytes]:
        """Read one reply: status, headers by lower-case name, body."""
        status = int(self._read.readline().split()[1])
        headers = {}
        while (line := self._read.readline().strip()) != b"":
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, self._read.read(int(headers.get("content-length", "0"))) if body else b""

    def closed(self) -> bool:
        """Whether the server closes the connection and sends nothing more."""
        return self._read.read() == b""

    def close(self) -> None:
        self._read.close()
        self.socket.close()


@contextmanager
def running(app: ASGIApp, host: str = "127.0.0.1", *, keep_alive: int = 75) -> Iterator[Running]:
    """Serve an application on a free port."""
    started: queue.SimpleQueue[Running | BaseException] = queue.SimpleQueue()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        server = HttpServer(app, host, 0, keep_alive=keep_alive)
        try:
            await server.start()
        except BaseException as error:
            started.put(error)
            raise
        stops.append(lambda: loop.call_soon_threadsafe(stop.set))
        started.put(Running(server, loop))
        await stop.wait()
        await server.stop(0.1)

    stops: list[Callable[[], object]] = []
    thread = threading.Thread(target=lambda: uvloop.run(main()), daemon=True)
    thread.start()
    try:
        first = started.get(timeout=WAIT)
        if isinstance(first, BaseException):
            raise first
        yield first
    finally:
        for stop in stops:
            stop()
        thread.join(WAIT)
