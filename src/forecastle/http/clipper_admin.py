"""Clipper's admin contract: ``POST /admin/*`` on the management port; what fails is 400 with a sentence.

https://github.com/ucbrise/clipper/blob/develop/src/management/src/management_frontend.hpp
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from forecastle.cluster.desired import Application, input_type
from forecastle.cluster.management import Management
from forecastle.cluster.specs import ModelSpec, valid_name
from forecastle.errors import BadInput, ForecastleError, ModelNotFound, StoreFailed
from forecastle.http.body import read_body
from forecastle.http.core import Core

PREFIX = "/admin/"
NO_CONTAINER = "NO_CONTAINER"
"""What Clipper's client sends for a model without a container: it is registered, and nothing runs for it."""

_BODY = 1 << 20


class AddApplication(msgspec.Struct):
    """``add_app``; the last four are ours."""

    name: str
    input_type: str
    default_output: str
    latency_slo_micros: int
    policy: str = "current"
    policy_options: dict[str, float | str | dict[str, float]] = {}
    cache_bytes: int | None = None
    cache_seconds: float = 0.0


class Named(msgspec.Struct):
    """``delete_app``, ``get_application``."""

    name: str


class Links(msgspec.Struct):
    """``add_model_links``, ``delete_model_links``."""

    app_name: str
    model_names: list[str]


class AddModel(msgspec.Struct):
    """``add_model``; ``container_name`` is where the model comes from: any source that ``forecastle serve`` takes."""

    model_name: str
    model_version: str
    input_type: str
    labels: list[str] = []
    container_name: str | None = None
    model_data_path: str = ""
    batch_size: int = -1


class Version(msgspec.Struct):
    """``set_model_version``, ``delete_versioned_model``, ``get_model``."""

    model_name: str
    model_version: str


class Verbose(msgspec.Struct):
    """``get_all_…``."""

    verbose: bool


class OfApplication(msgspec.Struct):
    """``get_linked_models``, ``get_state``."""

    app_name: str
    uid: Any = 0


class Replica(msgspec.Struct):
    """``get_container``."""

    model_name: str
    model_version: str
    replica_id: int


T = TypeVar("T", bound=msgspec.Struct)


class ClipperAdmin:
    """The calls, each a coroutine from the body's struct to a sentence (text) or a value (JSON)."""

    def __init__(self, management: Management, core: Core, defaults: ModelSpec) -> None:
        self._management = management
        self._core = core
        self._defaults = defaults

    async def add_app(self, body: AddApplication) -> str:
        """Register an application."""
        application = Application(
            name=body.name,
            input_type=body.input_type,
            default_output=body.default_output,
            slo_micros=body.latency_slo_micros,
            policy=body.policy,
            policy_options=body.policy_options,
            cache_seconds=body.cache_seconds,
        )
        if body.cache_bytes is not None:
            application = msgspec.structs.replace(application, cache_bytes=body.cache_bytes)
        await self._management.register(application)
        return f"Successfully added application with name {body.name}"

    async def delete_app(self, body: Named) -> str:
        """Unregister an application."""
        await self._management.unregister(body.name)
        return f"Successfully deleted application with name {body.name}"

    async def add_model_links(self, body: Links) -> str:
        """Link an application to a model; Clipper's contract knows one, ours any number."""
        try:
            await self._management.link(body.app_name, tuple(body.model_names))
        except ModelNotFound as error:
            raise BadInput(f"No model with name {', '.join(body.model_names)} exists: {error.message}") from None
        return f"Successfully linked application {body.app_name} to {', '.join(body.model_names)}"

    async def delete_model_links(self, body: Links) -> str:
        """Take links away."""
        await self._management.unlink(body.app_name, tuple(body.model_names))
        return "Success!"

    async def add_model(self, body: AddModel) -> str:
        """Register a version of a model and make it current; where it has a source, it is loaded first."""
        if body.batch_size <= 0 and body.batch_size != -1:
            raise BadInput(f"batch_size is {body.batch_size}: it is a positive number, or -1 for an adaptive size")
        containerless = body.container_name in {None, "", NO_CONTAINER}
        spec = msgspec.structs.replace(
            self._defaults,
            name=valid_name(body.model_name),
            version=body.model_version,
            source="" if containerless else body.container_name,
            input_type=input_type(body.input_type),
            labels=tuple(label for label in body.labels if label),
            batch_size=body.batch_size,
            replicas=0 if containerless else 1,
        )
        await self._management.deploy(spec)
        return f"Successfully added model with name {spec.name} and input type {spec.input_type}"

    async def set_model_version(self, body: Version) -> str:
        """Make a version the current one."""
        await self._management.use(body.model_name, body.model_version)
        return f"Successfully set model {body.model_name} to version {body.model_version}"

    async def delete_versioned_model(self, body: Version) -> str:
        """Unregister a version."""
        await self._management.remove(body.model_name, body.model_version)
        return f"Successfully deleted version {body.model_version} of model {body.model_name}"

    async def get_all_applications(self, body: Verbose) -> object:
        """List the applications."""
        found = self._management.desired.applications
        return [_application(each) for each in found.values()] if body.verbose else list(found)

    async def get_application(self, body: Named) -> object:
        """Describe an application; an unknown one is an empty object."""
        found = self._management.desired.applications.get(body.name)
        return {} if found is None else _application(found)

    async def get_linked_models(self, body: OfApplication) -> object:
        """List the models that an application is linked to."""
        return list(self._management.desired.application(body.app_name).models)

    async def get_all_models(self, body: Verbose) -> object:
        """List every version of every model."""
        models = self._management.desired.models.values()
        specs = [spec for versions in models for spec in versions.values()]
        if body.verbose:
            return [self._model(spec) for spec in specs]
        return [f"{spec.name}:{spec.version}" for spec in specs]

    async def get_model(self, body: Version) -> object:
        """Describe a version; an unknown one is an empty object."""
        spec = self._management.desired.models.get(body.model_name, {}).get(body.model_version)
        return {} if spec is None else self._model(spec)

    async def get_all_containers(self, body: Verbose) -> object:
        """List the replicas that are ready."""
        replicas = [
            self._replica(name, version, replica.index)
            for (name, version), model in self._core.versions.items()
            for replica in model.describe().replicas
            if replica.state == "ready"
        ]
        return replicas if body.verbose else [f"{each['model_id']}:{each['model_replica_id']}" for each in replicas]

    async def get_container(self, body: Replica) -> object:
        """Describe a replica; an unknown one is an empty object."""
        model = self._core.versions.get((body.model_name, body.model_version))
        there = () if model is None else (each.index for each in model.describe().replicas if each.state == "ready")
        if body.replica_id not in there:
            return {}
        return self._replica(body.model_name, body.model_version, body.replica_id)

    async def get_state(self, body: OfApplication) -> str:
        """Return an application's default output, which is all the state that Clipper keeps."""
        return self._management.desired.application(body.app_name).default_output

    def _model(self, spec: ModelSpec) -> dict[str, object]:
        return {
            "model_name": spec.name,
            "model_version": spec.version,
            "input_type": spec.input_type,
            "labels": list(spec.labels),
            "container_name": spec.source or NO_CONTAINER,
            "model_data_path": "DEPRECATED",
            "is_current_version": self._management.desired.current[spec.name] == spec.version,
        }

    def _replica(self, name: str, version: str, index: int) -> dict[str, object]:
        spec = self._management.desired.models.get(name, {}).get(version)
        return {
            "model_id": f"{name}:{version}",
            "model_name": name,
            "model_version": version,
            "model_replica_id": index,
            "input_type": spec.input_type if spec is not None else "",
        }


def admin_routes(management: Management, core: Core, defaults: ModelSpec) -> list[Route]:
    """Return the routes; ``defaults`` is the specification of a model that says nothing for itself."""
    admin = ClipperAdmin(management, core, defaults)

    async def ping(_: Request) -> Response:
        return PlainTextResponse("PONG")

    return [
        Route(f"{PREFIX}ping", ping),
        _route(admin.add_app, AddApplication),
        _route(admin.delete_app, Named),
        _route(admin.add_model_links, Links),
        _route(admin.delete_model_links, Links),
        _route(admin.add_model, AddModel),
        _route(admin.set_model_version, Version),
        _route(admin.delete_versioned_model, Version),
        _route(admin.get_all_applications, Verbose),
        _route(admin.get_application, Named),
        _route(admin.get_linked_models, OfApplication),
        _route(admin.get_all_models, Verbose),
        _route(admin.get_model, Version),
        _route(admin.get_all_containers, Verbose),
        _route(admin.get_container, Replica),
        _route(admin.get_state, OfApplication),
    ]


def _route(call: Callable[[T], Awaitable[object]], body: type[T]) -> Route:
    decode = msgspec.json.Decoder(body).decode

    async def endpoint(request: Request) -> Response:
        try:
            answer = await call(decode(await read_body(request.receive, _BODY)))
        except msgspec.DecodeError as error:
            keys = ", ".join(field.name for field in msgspec.structs.fields(body))
            return PlainTextResponse(f"Error parsing JSON: {error}. Expected an object with {keys}", 400)
        except ForecastleError as error:
            return PlainTextResponse(error.message, 503 if isinstance(error, StoreFailed) else 400)
        if isinstance(answer, str):
            return PlainTextResponse(answer)
        return JSONResponse(answer)

    return Route(f"{PREFIX}{call.__name__}", endpoint, methods=["POST"])


def _application(application: Application) -> dict[str, object]:
    return {
        "name": application.name,
        "input_type": application.input_type,
        "default_output": application.default_output,
        "latency_slo_micros": application.slo_micros,
        "linked_models": list(application.models),
        "policy": application.policy,
    }
