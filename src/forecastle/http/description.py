"""What the server says of itself: Swagger 2.0 for MMS's clients, OpenAPI 3.1 for all others, a page for people."""

from __future__ import annotations

from importlib import resources

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from forecastle.http import openapi, swagger
from forecastle.http.core import Core
from forecastle.serving.router import ModelInfo

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "script-src 'unsafe-inline'",
        "img-src blob: data:",
        "connect-src 'self'",
    )
)


def description_routes(core: Core, *, title: str, version: str) -> list[Route]:
    """Return ``/api-description``, ``/openapi.json`` (and ``OPTIONS /``) and ``/docs``, of what is served then."""
    page = resources.files("forecastle.http").joinpath("documentation.html").read_text(encoding="utf-8")

    def models() -> list[ModelInfo]:
        return [model.describe() for model in core.models.values()]

    async def api_description(request: Request) -> Response:
        host = request.headers.get("host", request.url.netloc)
        return _json({"description": swagger.describe(models(), host=host, title=title, version=version)})

    async def openapi_json(_: Request) -> Response:
        return _json(openapi.describe(models(), title=title, version=version))

    async def docs(_: Request) -> Response:
        # Nothing of the page comes from elsewhere, and nothing that a model says can become a part of it.
        return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})

    return [
        Route("/api-description", api_description),
        Route("/openapi.json", openapi_json),
        Route("/", openapi_json, methods=["OPTIONS"]),  # as MMS 1.x describes itself
        Route("/docs", docs),
    ]


def _json(document: object) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")
