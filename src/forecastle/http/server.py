"""The HTTP server: uvicorn's protocol on sockets of our own, started and stopped by the caller."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from forecastle.errors import AddressInUse, StartError, UsageError
from forecastle.http.protocol import Protocol

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
"""How long an idle connection stays open: longer than the 60 s of common load balancers, which must close first."""

# How long the replies to requests that the drain deadline ended may take to go out.
_LAST_REPLIES_SECONDS = 1.0


class HttpServer:
    """Serves one ASGI application on one host and port.

    ``option`` is the flag that chose the port, for messages. The signals stay with the caller.
    """

    def __init__(
        self, app: ASGIApp, host: str, port: int, *, option: str = "--port", keep_alive: int = KEEP_ALIVE_SECONDS
    ) -> None:
        self.host = host
        self.port = port
        self._option = option
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=keep_alive,
        )
        logging.getLogger("uvicorn.error").addFilter(_not_whole)
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return once connections are accepted; ``port`` is then the real one.

        Raises:
            AddressInUse: another program listens there.
            UsageError: this machine has no such address, or may not open such a port.
        """
        sockets = bind(self.host, self.port, self._option)
        self.port = sockets[0].getsockname()[1]
        self._server.startup_done = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._server.serve(sockets))
        await asyncio.wait([self._serving, self._server.startup_done], return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()

    async def stop(self, drain_seconds: float) -> None:
        """Accept nothing more, let requests in flight end for so long, then answer the rest with 503 and close.

        Idle connections close at once, the others with ``Connection: close`` after their reply.
        """
        if self._serving is None:
            return
        server = self._server
        server.config.timeout_graceful_shutdown = drain_seconds  # type: ignore[assignment] # any number will do there
        server.should_exit = True
        await self._serving
        self._serving = None
        for connection in list(server.server_state.connections):
            assert isinstance(connection, Protocol)
            connection.interrupt()
        ending = set(server.server_state.tasks)
        if ending:
            await asyncio.wait(ending, timeout=_LAST_REPLIES_SECONDS)
        for connection in list(server.server_state.connections):
            connection.transport.abort()


def _not_whole(record: logging.LogRecord) -> bool:
    """Leave out what uvicorn says of a reply without an end: so ends a stream that failed, which was logged."""
    return "without completing response" not in record.getMessage()


class _Server(uvicorn.Server):
    """uvicorn's server, which tells when it listens and leaves the signals alone."""

    startup_done: asyncio.Future[None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.startup_done.set_result(None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int, option: str) -> list[socket.socket]:
    """Return listening sockets for every address of ``host``; with port 0 all have the port the first one got.

    Raises:
        AddressInUse: the port is taken.
        UsageError: the host or port cannot be opened here.
    """
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError):
        raise UsageError(
            f"the host {host!r} is no address or name of this machine: choose another with {_host_option(option)}"
        ) from None
    addresses = list(dict.fromkeys((info[0], info[4]) for info in found))
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, address in addresses:
        try:
            sockets.append(_listen(family, (address[0], port, *address[2:]), shared=len(addresses) > 1))
        except OSError as error:  # noqa: PERF203 - a name has one or two addresses
            failure = error
            # A name such as localhost may stand for an address family that this machine has switched off.
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                break
        else:
            port = sockets[0].getsockname()[1]
    else:
        if sockets:
            return sockets
    for opened in sockets:
        opened.close()
    assert failure is not None, "getaddrinfo returns an address or raises"
    raise _refusal(failure, host, port, option)


def _listen(family: int, address: tuple[Any, ...], *, shared: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it means that two programs may take the same port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and shared:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # A reply goes out as head and body; without this the body would wait for the client's delayed acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)  # here, for only this finds a port that another program listens on
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _refusal(error: OSError, host: str, port: int, option: str) -> StartError:
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(
            f"port {port} on {host or 'all addresses'} is in use: "
            f"stop the program that listens there, or choose another port with {option}"
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return UsageError(f"this user may not open port {port}: choose one above 1023 with {option}")
    reason = os.strerror(error.errno or 0)
    return UsageError(f"cannot listen on {host!r} port {port} ({reason}): check {_host_option(option)} and {option}")


def _host_option(port_option: str) -> str:
    return port_option.replace("port", "host")
