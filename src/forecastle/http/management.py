"""The management application: metrics, health and the list of models."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecastle.http.core import Core
from forecastle.http.health import health_routes
from forecastle.http.metrics import metrics_route
from forecastle.http.pages import Pages
from forecastle.http.stats import HttpStats


def management_app(core: Core, stats: HttpStats) -> Pages:
    """What the management port serves. ``stats`` are those of the inference application, which ``/metrics`` shows.

    Requests to the management port itself are not counted there.
    """

    async def models(_: Request) -> Response:
        listed = [model.describe() for model in core.models.values()]
        return Response(msgspec.json.encode(listed), media_type="application/json")

    routes = [*health_routes(core), Route("/models", models), metrics_route(core, stats)]
    return Pages(routes, HttpStats())
