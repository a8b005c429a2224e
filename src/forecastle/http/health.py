"""Health: ``/ping`` for load balancers and SageMaker, ``/live`` and ``/ready`` for orchestrators.

Live means that the process runs its event loop; it never depends on a model. Ready means that every required model has
a ready replica and the server is not stopping.
"""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from forecastle.http.core import Core


def health_routes(core: Core) -> list[Route]:
    """Return the three routes. ``/ping`` asks the models' ``ping_fn``, the others answer from what is known."""

    async def ping(_: Request) -> JSONResponse:
        reasons = await core.check()
        if reasons:
            return JSONResponse({"health": "unhealthy!", "reasons": reasons}, 503)
        return JSONResponse({"health": "healthy!"})

    async def live(_: Request) -> JSONResponse:
        return JSONResponse({"live": True})

    async def ready(_: Request) -> JSONResponse:
        reasons = core.troubles()
        models = {name: _summary(core, name) for name in core.models}
        return JSONResponse({"ready": not reasons, "reasons": reasons, "models": models}, 503 if reasons else 200)

    return [Route("/ping", ping), Route("/live", live), Route("/ready", ready)]


def _summary(core: Core, name: str) -> dict[str, object]:
    info = core.models[name].describe()
    return {"required": info.required, "replicas": dict(Counter(replica.state for replica in info.replicas))}
