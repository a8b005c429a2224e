"""Models of hook files served by real replica processes, without HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import psutil

from forecastle.cluster.controller import Controller
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import RequestError
from forecastle.messages import Part, Request, Response
from forecastle.models.artifact import Artifact
from forecastle.serving.router import Router
from forecastle.serving.ticket import Result

_ids = count()

ECHO = "def predict_fn(data, model):\n    return data\n"


def hook_file(tmp_path: Path, text: str, name: str = "m") -> Artifact:
    path = tmp_path / f"{name}_hooks.py"
    path.write_text(text)
    return Artifact("hook file", "script", str(path), str(path))


class Served:
    """A router and its controller, and a way to ask."""

    def __init__(self, router: Router, controller: Controller) -> None:
        self.router = router
        self.controller = controller

    async def ask(self, data: bytes, model: str = "m", timeout: float = 30.0, version: str = "") -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        parts = [Part("", "application/octet-stream", data)]
        request = Request(f"r{next(_ids)}", model, parts, "*/*", time.monotonic() + timeout, version=version)
        self.router.submit(request, future.set_result)
        return await future

    async def body(self, data: bytes, model: str = "m", version: str = "") -> bytes:
        result = await self.ask(data, model, version=version)
        if isinstance(result, RequestError):
            raise result
        assert isinstance(result, Response)
        return result.body

    def pids(self, model: str = "m") -> list[int]:
        return [status.pid for status in self.router.models[model].replicas if status.pid is not None]


@asynccontextmanager
async def serving(artifact: Artifact, **options: object) -> AsyncIterator[Served]:
    """Serve one model, ``m``; whatever happens inside, no replica is left."""
    router = Router(asyncio.get_running_loop())
    controller = Controller(router)
    before = set(psutil.Process().children(recursive=True))
    try:
        await controller.start([(ModelSpec(name="m", source=None, **options), artifact)])  # type: ignore[arg-type]
        yield Served(router, controller)
    finally:
        began = time.monotonic()
        await controller.stop()
        assert time.monotonic() - began < 10
        left = [child for child in psutil.Process().children(recursive=True) if child not in before]
        assert not left, f"still running: {left}"


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a state that the code under test reaches by itself."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the state was never reached"
        await asyncio.sleep(0.01)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    asyncio.run(main())
