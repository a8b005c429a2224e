"""The bare limit: httptools and uvloop, the body sent back, nothing else. ``python -m bench.servers.echo PORT``."""

from __future__ import annotations

import asyncio
import sys

import httptools
import uvloop


class Echo(asyncio.Protocol):
    """Answers each request with its body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to parse."""
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        """Begin a body."""
        self.pieces: list[bytes] = []

    def on_body(self, piece: bytes) -> None:
        """Keep a piece of the body."""
        self.pieces.append(piece)

    def on_message_complete(self) -> None:
        """Send the body back."""
        body = b"".join(self.pieces)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        self.transport.write(head % (len(body), body))  # type: ignore[attr-defined] # asyncio types no transport here


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
