"""The inference application: bare ASGI for predictions, ``Pages`` for all else."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from forecastle.cluster.registry import Registry
from forecastle.http import mms, multi_model, sagemaker
from forecastle.http.core import Core
from forecastle.http.description import description_routes
from forecastle.http.health import health_routes
from forecastle.http.pages import Pages
from forecastle.http.predict import Predictions
from forecastle.http.stats import HttpStats

TITLE, VERSION = "Model Serving Apis", "1.0.0"
"""What MMS calls its API, and so the packages of its generated clients."""


class InferenceApp:
    """What the inference port serves.

    ``timeout`` is in seconds and bounds a request from its first byte to its answer; ``max_body`` is in bytes. Models
    may come and go while it runs: it looks them up in the core for each request. A ``registry`` lets them do so over
    HTTP, as SageMaker's multi-model endpoints do. ``title`` and ``version`` are those of its description.
    """

    def __init__(
        self,
        core: Core,
        stats: HttpStats,
        *,
        timeout: float,
        max_body: int,
        registry: Registry | None = None,
        title: str = TITLE,
        version: str = VERSION,
    ) -> None:
        self._predictions = Predictions(core, stats, timeout=timeout, max_body=max_body)
        routes = [
            *health_routes(core),
            sagemaker.execution_parameters(core),
            *description_routes(core, title=title, version=version),
        ]
        contracts = [mms.CONTRACT, sagemaker.CONTRACT]
        self._multi_model = registry is not None
        if registry is not None:
            routes += multi_model.routes(registry)
            contracts.append(multi_model.CONTRACT)
        self._pages = Pages(routes, stats, elsewhere=[contract.route for contract in contracts])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: str = scope.get("path", "")
        if path == sagemaker.INVOCATIONS:
            await self._predictions.answer(sagemaker.CONTRACT, scope, receive, send)
        elif path.endswith(mms.SUFFIX) and path.count("/") == 2:
            await self._predictions.answer(mms.CONTRACT, scope, receive, send)
        elif self._multi_model and path.startswith(multi_model.PREFIX) and path.endswith(multi_model.SUFFIX):
            await self._predictions.answer(multi_model.CONTRACT, scope, receive, send)
        else:
            await self._pages(scope, receive, send)
