"""The prediction route of MMS 1.x and TorchServe: ``POST /predictions/{name}``, and ``/{name}/{version}``.

A form has a part for each field, anything else is the body; the answer goes out as the model made it. PUT is POST here:
it is what ``curl -T`` sends. ``OPTIONS`` describes the model.

https://github.com/awslabs/multi-model-server/blob/master/docs/inference_api.md
https://github.com/pytorch/serve/blob/master/docs/inference_api.md
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from forecastle.http import mms, openapi, sagemaker
from forecastle.http.contract import Contract, RequestHeaders, one, require
from forecastle.http.core import Core
from forecastle.serving.router import ModelInfo

PREFIX = "/predictions/"
ROUTE = "/predictions/{name}"
OF_VERSION = "/predictions/{name}/{version:path}"


def model(core: Core, scope: Scope, _: RequestHeaders) -> str:
    """Return the model that the path names.

    Raises:
        ModelNotFound: no model of that name is served, or it has no such version.
        MethodNotAllowed: it is, but the method is neither POST nor PUT.
    """
    name, said = _target(scope)
    _described(core, name, said)
    require(scope, "POST", "PUT")
    return name


def version(scope: Scope) -> str:
    """Return the version that the path names, empty for the current one."""
    return _target(scope)[1]


CONTRACT = Contract(ROUTE, model, one(mms.parts), sagemaker.body, version=version)


def describing_routes(core: Core, *, version: str) -> list[Route]:
    """Return the routes that describe one model; ``version`` is that of the API."""

    async def describe(request: Request) -> Response:
        found = _described(core, request.path_params["name"], request.path_params.get("version", ""))
        document = openapi.describe_model(found, path=request.scope["path"], version=version)
        return Response(msgspec.json.encode(document), media_type="application/json")

    return [Route(path, describe, methods=["OPTIONS"]) for path in (ROUTE, OF_VERSION)]


def _target(scope: Scope) -> tuple[str, str]:
    name, _, said = scope["path"][len(PREFIX) :].partition("/")
    return name, said


def _described(core: Core, name: str, said: str) -> ModelInfo:
    found = core.versions.get((name, said)) if said else core.models.get(name)
    if found is None:
        raise core.unknown(name, said)
    return found.describe()
