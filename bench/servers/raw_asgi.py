"""Raw ASGI on uvicorn, the body sent back. ``python -m bench.servers.raw_asgi PORT``."""

from __future__ import annotations

import sys
from typing import Any

import uvicorn


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer with the body."""
    assert scope["type"] == "http"
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        lifespan="off",
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
    )
