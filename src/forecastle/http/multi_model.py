"""SageMaker's multi-model endpoints: load, list, describe, invoke and unload models by name.

https://docs.aws.amazon.com/sagemaker/latest/dg/mms-container-apis.html
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from forecastle.cluster.registry import Registry
from forecastle.errors import BadInput, ModelNotFound
from forecastle.http import sagemaker
from forecastle.http.body import read_body
from forecastle.http.contract import Contract, RequestHeaders, one, require_post
from forecastle.http.core import Core

PREFIX = "/models/"
SUFFIX = "/invoke"
PAGE = 100
"""How many models one page of the list holds."""
BODY = 1 << 20
"""The most bytes of a request to load a model."""


class _Load(msgspec.Struct):
    model_name: str
    url: str


_read = msgspec.json.Decoder(_Load).decode


def model(core: Core, scope: Scope, _: RequestHeaders) -> str:
    """Return the model that the path ``/models/{name}/invoke`` names.

    Raises:
        ModelNotFound: no model of that name is loaded.
        MethodNotAllowed: it is, but the method is not POST.
    """
    name: str = scope["path"][len(PREFIX) : -len(SUFFIX)]
    if name not in core.models:
        raise core.unknown(name)
    require_post(scope)
    return name


CONTRACT = Contract("/models/{name}/invoke", model, one(sagemaker.parts), sagemaker.body)


def routes(registry: Registry) -> list[Route]:
    """Return the routes of the management of models."""

    async def load(request: Request) -> Response:
        try:
            asked = _read(await read_body(request.receive, BODY))
        except msgspec.DecodeError as error:
            raise BadInput(f'expected JSON like {{"model_name": "…", "url": "…"}}: {error}') from None
        await registry.load(asked.model_name, asked.url)
        return JSONResponse(_described(registry, asked.model_name))

    async def listed(request: Request) -> Response:
        token = request.query_params.get("next_page_token", "")
        first = int(token) if token.isascii() and token.isdigit() else 0
        names = sorted(registry.urls)
        page: dict[str, object] = {"models": [_described(registry, name) for name in names[first : first + PAGE]]}
        if first + PAGE < len(names):
            page["nextPageToken"] = str(first + PAGE)
        return JSONResponse(page)

    async def describe(request: Request) -> Response:
        return JSONResponse(_described(registry, request.path_params["name"]))

    async def unload(request: Request) -> Response:
        await registry.unload(request.path_params["name"])
        return Response()

    return [
        Route("/models", load, methods=["POST"]),
        Route("/models", listed, methods=["GET"]),
        Route("/models/{name}", describe, methods=["GET"]),
        Route("/models/{name}", unload, methods=["DELETE"]),
    ]


def _described(registry: Registry, name: str) -> dict[str, str]:
    url = registry.urls.get(name)
    if url is None:
        raise ModelNotFound(f"no model {name[:128]!r} is loaded")
    return {"modelName": name, "modelUrl": url}
