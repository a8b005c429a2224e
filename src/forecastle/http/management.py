"""The management application: metrics, health, the list of models, and whatever routes change what is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
from forecastle.serving.router import ModelInfo

_PAGE = 100
"""The most models that one page of the list holds."""

NO_APPLICATIONS: Mapping[str, ServedApplication] = {}


def _nowhere(name: str, version: str) -> str:  # noqa: ARG001
    return ""


def management_app(
    core: Core,
    stats: HttpStats,
    *,
    applications: Mapping[str, ServedApplication] = NO_APPLICATIONS,
    routes: Sequence[Route] = (),
    source: Callable[[str, str], str] = _nowhere,
) -> Pages:
    """What the management port serves. ``stats`` are those of the inference application, which ``/metrics`` shows.

    Requests to the management port itself are not counted there; those of web pages change nothing. ``source`` says
    where a model's version came from.
    """

    async def models(request: Request) -> Response:
        """List the current version of each model, in pages, as MMS 1.x does and with what we know besides."""
        first, limit = _number(request, "next_page_token", 0), _number(request, "limit", _PAGE)
        limit = limit if 0 < limit <= _PAGE else _PAGE
        names = sorted(core.models)
        infos = [core.models[name].describe() for name in names[first : first + limit]]
        page: dict[str, object] = {"models": [_listed(info, source(info.name, info.version)) for info in infos]}
        if first + limit < len(names):
            page["nextPageToken"] = str(first + limit)
        return Response(msgspec.json.encode(page), media_type="application/json")

    own = [*health_routes(core), Route("/models", models), metrics_route(core, stats, applications)]
    return Pages([*own, *routes], HttpStats(), guarded=True)


def _number(request: Request, key: str, default: int) -> int:
    """Return a number of the query; what is none counts as left out, as it does for MMS."""
    text = request.query_params.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def _listed(info: ModelInfo, url: str) -> dict[str, object]:
    return {"modelName": info.name, "modelUrl": url, **msgspec.structs.asdict(info)}
