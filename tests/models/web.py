"""A web server of the tests' own, on a free port of this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """What the server hands out by path, and the requests it saw."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []

    def put(
        self, path: str, body: bytes, *, etag: str = "", modified: str = "", status: int = 200, **headers: str
    ) -> str:
        """Hand out ``body`` at ``path``, with 304 for who has it already; the URL comes back."""
        given = {"ETag": etag, "Last-Modified": modified, "Content-Length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}

        def answer(handler: BaseHTTPRequestHandler) -> None:
            same = (etag and handler.headers["If-None-Match"] == etag) or (
                modified and handler.headers["If-Modified-Since"] == modified
            )
            send(handler, 304 if same else status, {} if same else given, b"" if same else body)

        return self.answer(path, answer)

    def answer(self, path: str, answer: Answer) -> str:
        self.answers[path] = answer
        return self.url + path

    def redirect(self, path: str, location: str) -> str:
        return self.put(path, b"", status=302, Location=location)


def send(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        if value:
            handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serving() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            answer = site.answers.get(self.path.partition("?")[0])
            if answer is None:
                self.send_error(404)
            else:
                answer(self)

        do_HEAD = do_GET  # noqa: N815 - the base class's name

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
