"""The inference application: bare ASGI for predictions, ``Pages`` for all else."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from forecastle.cluster.registry import Registry
from forecastle.http import clipper, mms, multi_model, predictions, sagemaker
from forecastle.http.clipper_metrics import clipper_metrics_route
from forecastle.http.contract import Contract
from forecastle.http.core import Core
from forecastle.http.description import description_routes
from forecastle.http.forms import MULTIPART
from forecastle.http.health import health_routes
from forecastle.http.pages import Pages
from forecastle.http.predict import Predictions
from forecastle.http.stats import HttpStats
from forecastle.serving.application import ServedApplication

_EITHER = predictions.PREFIX + mms.SUFFIX[1:]
_FORM = MULTIPART.encode()
NO_APPLICATIONS: Mapping[str, ServedApplication] = {}
TITLE, VERSION = "Model Serving Apis", "1.0.0"
"""What MMS calls its API, and so the packages of its generated clients."""


class InferenceApp:
    """What the inference port serves.

    ``timeout`` is in seconds and bounds a request from its first byte to its answer; ``max_body`` is in bytes. Models
    may come and go while it runs: it looks them up in the core for each request. A ``registry`` lets them do so over
    HTTP, as SageMaker's multi-model endpoints do. ``applications`` may come and go likewise; they go before models of
    their name. ``title`` and ``version`` are those of its description.
    """

    def __init__(
        self,
        core: Core,
        stats: HttpStats,
        *,
        timeout: float,
        max_body: int,
        registry: Registry | None = None,
        applications: Mapping[str, ServedApplication] = NO_APPLICATIONS,
        title: str = TITLE,
        version: str = VERSION,
    ) -> None:
        self.predictions = Predictions(core, stats, timeout=timeout, max_body=max_body)
        routes = [
            *health_routes(core),
            sagemaker.execution_parameters(core),
            *description_routes(core, title=title, version=version),
            clipper_metrics_route(core, applications),
            *predictions.describing_routes(core, version=version),
        ]
        self._core = core
        self._applications = applications
        self._predict, self._update = clipper.contracts(applications)
        contracts = [mms.CONTRACT, sagemaker.CONTRACT, self._update, predictions.CONTRACT, multi_model.CONTRACT]
        if registry is not None:
            routes += multi_model.routes(registry)
        self._pages = Pages(routes, stats, elsewhere=[contract.route for contract in contracts])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        contract = self.contract(scope.get("path", ""), scope)
        if contract is None:
            await self._pages(scope, receive, send)
        else:
            await self.predictions.answer(contract, scope, receive, send)

    def contract(self, path: str, scope: Scope) -> Contract | None:
        """Return the contract of a path under which predictions are made, and None for any other path."""
        if self._applications and (contract := self._of_application(path, scope)) is not None:
            return contract
        if path == sagemaker.INVOCATIONS:
            return sagemaker.CONTRACT
        if path.endswith(mms.SUFFIX) and path.count("/") == 2 and not self._is_model_called_predict(path):
            return mms.CONTRACT
        if path.startswith(predictions.PREFIX) and scope["method"] != "OPTIONS":
            return predictions.CONTRACT
        if path.startswith(multi_model.PREFIX) and path.endswith(multi_model.SUFFIX):
            return multi_model.CONTRACT
        return None

    def _is_model_called_predict(self, path: str) -> bool:
        """Whether ``/predictions/predict`` is a model called predict, and not one called predictions."""
        return path == _EITHER and "predictions" not in self._core.models

    def _of_application(self, path: str, scope: Scope) -> Contract | None:
        """Return the contract of a path that belongs to an application; Clipper allows a slash at its end."""
        name, _, what = path[1:].rstrip("/").partition("/")
        if name not in self._applications:
            return None
        if what == "update":
            return self._update
        if what == "predict" and not _is_form(scope):
            return self._predict
        return None


def _is_form(scope: Scope) -> bool:
    """Whether the body is a form, which is how MMS's clients send pictures."""
    for name, value in scope["headers"]:
        if name == b"content-type":
            return bool(value[:19].lower() == _FORM)
    return False
