"""``OPTIONS /`` on the management port: the OpenAPI description of MMS 1.x's management API."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

_NAME = ("name", "path", "string", True)
_VERSION = ("version", "path", "string", True)
_REGISTER = (
    ("url", "query", "string", True),
    *((name, "query", "string", False) for name in ("model_name", "handler", "runtime")),
    *((name, "query", "integer", False) for name in ("batch_size", "max_batch_delay", "response_timeout")),
    ("initial_workers", "query", "integer", False),
    ("synchronous", "query", "boolean", False),
)
_SCALE = (
    *((name, "query", "integer", False) for name in ("min_worker", "max_worker")),
    ("synchronous", "query", "boolean", False),
)
_LIST = (("limit", "query", "integer", False), ("next_page_token", "query", "string", False))

_OPERATIONS = (
    ("/models", "get", "List models", _LIST),
    ("/models", "post", "Register a model", _REGISTER),
    ("/models/{name}", "get", "Describe a model's current version", (_NAME,)),
    ("/models/{name}", "put", "Scale a model's current version", (_NAME, *_SCALE)),
    ("/models/{name}", "delete", "Unregister a model", (_NAME,)),
    ("/models/{name}/{version}", "get", "Describe a version", (_NAME, _VERSION)),
    ("/models/{name}/{version}", "put", "Scale a version", (_NAME, _VERSION, *_SCALE)),
    ("/models/{name}/{version}", "delete", "Unregister a version", (_NAME, _VERSION)),
    ("/models/{name}/{version}/set-default", "put", "Make a version the current one", (_NAME, _VERSION)),
)


def description() -> dict[str, Any]:
    """Return the description."""
    paths: dict[str, Any] = {}
    for path, method, summary, taken in _OPERATIONS:
        paths.setdefault(path, {})[method] = {
            "operationId": "_".join([method, *(part.strip("{}") for part in path.split("/") if part)]),
            "summary": summary,
            "parameters": [
                {"name": name, "in": where, "required": required, "schema": {"type": type_}}
                for name, where, type_, required in taken
            ],
            "responses": {
                "200": {"description": "OK", "content": {"application/json": {"schema": {"type": "object"}}}},
                "default": {"description": "The request failed; the message says why."},
            },
        }
    return {"openapi": "3.1.0", "info": {"title": "Model Management Apis", "version": "1.0.0"}, "paths": paths}


async def endpoint(_: Request) -> Response:
    """Answer with the description."""
    return JSONResponse(description())
