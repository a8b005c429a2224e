"""The management API of MMS 1.x and TorchServe, on the management port: register, scale, describe, unregister models.

Parameters stand in the query or in a JSON body. Times are in the unit of their names' contract: ``response_timeout`` in
seconds, ``max_batch_delay`` in milliseconds.

https://github.com/awslabs/multi-model-server/blob/master/docs/management_api.md
https://github.com/pytorch/serve/blob/master/docs/management_api.md
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from forecastle.cluster.all_models import AllModels
from forecastle.cluster.desired import MAX_REPLICAS
from forecastle.cluster.management import Management
from forecastle.cluster.model_store import ModelStore
from forecastle.cluster.specs import ModelSpec
from forecastle.errors import BadInput, Conflict, NotLoaded, RequestError
from forecastle.http import mms_management_api
from forecastle.http.mms_described import describe
from forecastle.http.mms_parameters import Parameters, parameters
from forecastle.models.mar import LANGUAGES

logger = logging.getLogger(__name__)

_SCALED = ("Workers scaled", 200)
_UNDER_WAY = ("Processing worker updates...", 202)


class MmsManagement:
    """The routes; ``defaults`` is the specification of a model that says nothing for itself.

    What a client does not wait for goes on by itself, and is told in the log.
    """

    def __init__(self, management: Management, models: AllModels, store: ModelStore, defaults: ModelSpec) -> None:
        self._management = management
        self._models = models
        self._store = store
        self._defaults = defaults
        self._work: set[asyncio.Task[None]] = set()

    def routes(self) -> list[Route]:
        """Return the routes."""
        described = [
            ("GET", self._describe),
            ("PUT", self._scale),
            ("DELETE", self._unregister),
        ]
        return [
            Route("/models", self._register, methods=["POST"]),
            *(Route("/models/{name}", endpoint, methods=[method]) for method, endpoint in described),
            *(Route("/models/{name}/{version}", endpoint, methods=[method]) for method, endpoint in described),
            Route("/models/{name}/{version}/set-default", self._set_default, methods=["PUT"]),
            Route("/", mms_management_api.endpoint, methods=["OPTIONS"]),
        ]

    async def _register(self, request: Request) -> Response:
        asked = await parameters(request)
        url = asked.text("url") or asked.text("model_url")
        if not url:
            raise BadInput("Parameter url is required.")
        language = asked.text("runtime") or LANGUAGES[0]
        if language.lower() not in LANGUAGES:
            raise BadInput(f"Invalid RuntimeType value: {language}; expected one of {', '.join(LANGUAGES)}")
        workers = _workers(asked, "initial_workers", 0)
        waits = asked.flag("synchronous", default=True)
        found = await self._store.find(url, name=asked.text("model_name"), handler=asked.text("handler"))
        spec = msgspec.structs.replace(
            _batched(self._defaults, asked),
            name=found.name,
            source=found.source,
            version=found.version,
            service=asked.text("handler"),
            replicas=workers if waits else 0,
        )
        if self._models.source(spec.name, spec.version):
            raise Conflict(f"Model {spec.name} is already registered.")
        try:
            await self._management.deploy(spec, current=False)
        except NotLoaded as error:
            raise _not_started(error) from None
        if not workers:
            return _status(f'Model "{spec.name}" registered')
        if waits:
            return _status(*_SCALED)
        self._go_on(self._start(spec, workers))
        return _status(*_UNDER_WAY)

    async def _scale(self, request: Request) -> Response:
        name, version = _target(request)
        asked = await parameters(request)
        least = _workers(asked, "min_worker", 1)
        if _workers(asked, "max_worker", least) < least:
            raise BadInput("max_worker cannot be less than min_worker")
        version = self._models.find(name, version).spec.version
        if not asked.flag("synchronous", default=False):
            self._go_on(self._models.scale(name, version, least))
            return _status(*_UNDER_WAY)
        try:
            await self._models.scale(name, version, least)
        except NotLoaded as error:
            raise _not_started(error) from None
        return _status(*_SCALED)

    async def _describe(self, request: Request) -> Response:
        name, version = _target(request)
        spec = self._models.spec(name, version)
        found = self._models.served(spec.name, spec.version)
        return JSONResponse(
            describe(
                spec if found is None else found.spec,
                None if found is None else found.model,
                registered=self._models.registered(spec.name, spec.version),
                reason=self._models.trouble(spec.name, spec.version),
            )
        )

    async def _unregister(self, request: Request) -> Response:
        name, version = _target(request)
        await self._models.remove(name, version)
        return _status(f'Model "{name}" unregistered')

    async def _set_default(self, request: Request) -> Response:
        name, version = _target(request)
        self._models.find(name, version)
        await self._models.use(name, version)
        return _status(f'Default version successfully updated for model "{name}" to "{version}"')

    async def _start(self, spec: ModelSpec, workers: int) -> None:
        """Start the replicas of a model that was registered without; one that cannot be loaded does not stay."""
        try:
            await self._models.scale(spec.name, spec.version, workers)
        except RequestError:
            await self._models.remove(spec.name, spec.version)
            raise

    def _go_on(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_told(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)


async def _told(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except RequestError as error:
        logger.error("what was asked of the management port could not be done: %s", error.message)  # noqa: TRY400


def _workers(asked: Parameters, key: str, default: int) -> int:
    count = asked.count(key, default)
    if count > MAX_REPLICAS:
        raise BadInput(f"Parameter {key} is {count}: it is {MAX_REPLICAS} at the most")
    return count


def _batched(spec: ModelSpec, asked: Parameters) -> ModelSpec:
    """Return the specification with the sizes and times that were asked for."""
    changes: dict[str, Any] = {}
    if "batch_size" in asked:
        changes["batch_size"] = asked.count("batch_size", 1, least=1)
    if "max_batch_delay" in asked:
        changes["batch_delay"] = asked.count("max_batch_delay", 0) / 1000
    if "response_timeout" in asked:
        changes["timeout"] = float(asked.count("response_timeout", 1, least=1))
    return msgspec.structs.replace(spec, **changes)


def _target(request: Request) -> tuple[str, str]:
    return request.path_params["name"], request.path_params.get("version", "")


def _not_started(error: NotLoaded) -> NotLoaded:
    return NotLoaded(f"Failed to start workers: {error.message}")


def _status(text: str, code: int = 200) -> Response:
    return JSONResponse({"status": text}, code)
