from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from forecastle.cluster.controller import Controller
from forecastle.cluster.registry import Registry
from forecastle.cluster.specs import ServerOptions
from forecastle.http.multi_model import PAGE, routes
from forecastle.http.pages import Pages
from forecastle.http.stats import HttpStats
from forecastle.serving.router import Router


def test_the_list_comes_in_pages_that_hold_every_model_once() -> None:
    async def test() -> None:
        controller = Controller(Router(asyncio.get_running_loop()))
        registry = Registry(controller, ServerOptions(cache_dir=Path()))
        names = [f"m{i:04}" for i in range(2 * PAGE + 5)]
        registry.urls.update({name: f"/{name}" for name in reversed(names)})
        transport = httpx.ASGITransport(app=Pages(routes(registry), HttpStats()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            seen: list[str] = []
            query = ""
            while True:
                page = (await client.get(f"/models{query}")).json()
                seen += [model["modelName"] for model in page["models"]]
                if "nextPageToken" not in page:
                    break
                query = f"?next_page_token={page['nextPageToken']}"
            assert seen == names
            assert (await client.get("/models?next_page_token=x")).json()["models"][0]["modelName"] == "m0000"
            assert (await client.get("/models?next_page_token=100000")).json() == {"models": []}

    asyncio.run(test())
