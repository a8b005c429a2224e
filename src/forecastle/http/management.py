"""The management application: metrics, health, the list of models, and whatever routes change what is served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecastle.http.core import Core
from forecastle.http.health import health_routes
from forecastle.http.metrics import metrics_route
from forecastle.http.pages import Pages
from forecastle.http.stats import HttpStats
from forecastle.serving.application import ServedApplication

NO_APPLICATIONS: Mapping[str, ServedApplication] = {}


def management_app(
    core: Core,
    stats: HttpStats,
    *,
    applications: Mapping[str, ServedApplication] = NO_APPLICATIONS,
    routes: Sequence[Route] = (),
) -> Pages:
    """What the management port serves. ``stats`` are those of the inference application, which ``/metrics`` shows.

    Requests to the management port itself are not counted there.
    """

    async def models(_: Request) -> Response:
        listed = [model.describe() for model in core.versions.values()]
        return Response(msgspec.json.encode(listed), media_type="application/json")

    own = [*health_routes(core), Route("/models", models), metrics_route(core, stats, applications)]
    return Pages([*own, *routes], HttpStats())
