"""The control API on the management port: what ``forecastle app``, ``model``, ``status`` and ``top`` speak.

JSON in and out. What fails is the error shape of all our routes, with the status of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecastle.cluster.desired import Application
from forecastle.cluster.management import Management
from forecastle.cluster.specs import ModelSpec, valid_name
from forecastle.errors import ApplicationNotFound, BadInput, UsageError
from forecastle.http.body import read_body
from forecastle.http.core import Core
from forecastle.http.status import status
from forecastle.serving.application import ServedApplication

_BODY = 1 << 20

T = TypeVar("T")


class NewModel(msgspec.Struct, forbid_unknown_fields=True):
    """A version to load and register; what is not said is as the server's options say. ``current``: use it at once."""

    name: str
    source: str
    version: str = "1"
    input_type: str = ""
    labels: tuple[str, ...] = ()
    replicas: int | msgspec.UnsetType = msgspec.UNSET
    batch_size: int | msgspec.UnsetType = msgspec.UNSET
    batch_delay: float | msgspec.UnsetType = msgspec.UNSET
    timeout: float | msgspec.UnsetType = msgspec.UNSET
    queue_size: int | msgspec.UnsetType = msgspec.UNSET
    start_timeout: float | msgspec.UnsetType = msgspec.UNSET
    requirements: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    engine: str | msgspec.UnsetType = msgspec.UNSET
    service: str | msgspec.UnsetType = msgspec.UNSET
    current: bool = True


class NewApplication(Application, frozen=True, forbid_unknown_fields=True):
    """An application to register; its ``models`` are linked in the same call."""


class ModelChange(msgspec.Struct, forbid_unknown_fields=True):
    """A current version, a number of replicas (of ``version``, or of the current one), or both."""

    version: str | None = None
    replicas: int | None = None
    use: bool = True


def control_routes(
    management: Management, core: Core, applications: Mapping[str, ServedApplication], defaults: ModelSpec
) -> list[Route]:
    """Return the routes; ``defaults`` is the specification of a model that says nothing for itself."""

    async def show(_: Request) -> Response:
        return _json(status(management, core, applications))

    async def list_applications(_: Request) -> Response:
        return _json(list(management.desired.applications.values()))

    async def register(request: Request) -> Response:
        asked = await _read(request, NewApplication)
        application = Application(**msgspec.structs.asdict(asked))
        await management.register(application)
        if asked.models:
            try:
                await management.link(asked.name, asked.models)
            except BaseException:
                await management.unregister(asked.name)
                raise
        return _json(management.desired.application(asked.name), 201)

    async def describe(request: Request) -> Response:
        return _json(management.desired.application(request.path_params["name"]))

    async def unregister(request: Request) -> Response:
        await management.unregister(request.path_params["name"])
        return Response(status_code=204)

    async def link(request: Request) -> Response:
        name = request.path_params["name"]
        await management.link(name, (request.path_params["model"],))
        return _json(management.desired.application(name))

    async def unlink(request: Request) -> Response:
        name = request.path_params["name"]
        await management.unlink(name, (request.path_params["model"],))
        return _json(management.desired.application(name))

    async def purge(request: Request) -> Response:
        name = request.path_params["name"]
        application = applications.get(name)
        if application is None:
            raise ApplicationNotFound(f"no application {name[:128]!r} is registered")
        return _json({"purged": application.cache.purge() if application.cache is not None else 0})

    async def list_models(_: Request) -> Response:
        return _json([spec for versions in management.desired.models.values() for spec in versions.values()])

    async def deploy(request: Request) -> Response:
        asked = await _read(request, NewModel)
        given: dict[str, Any] = {
            key: value for key, value in msgspec.structs.asdict(asked).items() if value is not msgspec.UNSET
        }
        current = given.pop("current")
        spec = msgspec.structs.replace(defaults, **given)
        _check(spec)
        return _json(await management.deploy(spec, current=current), 201)

    async def describe_model(request: Request) -> Response:
        name = request.path_params["name"]
        management.desired.model(name)
        return _json(list(management.desired.models[name].values()))

    async def change(request: Request) -> Response:
        name = request.path_params["name"]
        asked = await _read(request, ModelChange)
        if asked.version is None and asked.replicas is None:
            raise BadInput("nothing is to be changed: give a version, or a number of replicas")
        if asked.replicas is not None:
            await management.scale(name, asked.version, asked.replicas)
        if asked.version is not None and asked.use:
            await management.use(name, asked.version)
        return _json(management.desired.model(name, asked.version))

    async def remove(request: Request) -> Response:
        await management.remove(request.path_params["name"], request.query_params.get("version"))
        return Response(status_code=204)

    return [
        Route("/v1/status", show),
        Route("/v1/applications", list_applications, methods=["GET"]),
        Route("/v1/applications", register, methods=["POST"]),
        Route("/v1/applications/{name}", describe, methods=["GET"]),
        Route("/v1/applications/{name}", unregister, methods=["DELETE"]),
        Route("/v1/applications/{name}/models/{model}", link, methods=["PUT"]),
        Route("/v1/applications/{name}/models/{model}", unlink, methods=["DELETE"]),
        Route("/v1/applications/{name}/purge", purge, methods=["POST"]),
        Route("/v1/models", list_models, methods=["GET"]),
        Route("/v1/models", deploy, methods=["POST"]),
        Route("/v1/models/{name}", describe_model, methods=["GET"]),
        Route("/v1/models/{name}", change, methods=["PATCH"]),
        Route("/v1/models/{name}", remove, methods=["DELETE"]),
    ]


def _check(spec: ModelSpec) -> None:
    """Refuse what no model can have.

    Raises:
        BadInput: a name or a number is out of its bounds.
    """
    try:
        valid_name(spec.name)
    except UsageError as error:
        raise BadInput(error.message) from None
    positive = {"timeout": spec.timeout, "queue_size": spec.queue_size, "start_timeout": spec.start_timeout}
    for key, value in positive.items():
        if value <= 0:
            raise BadInput(f"{key} is {value}: it must be more than 0")
    if spec.batch_size < 1 and spec.batch_size != -1:
        raise BadInput(f"batch_size is {spec.batch_size}: it is a positive number, or -1 for an adaptive size")
    if spec.batch_delay < 0:
        raise BadInput(f"batch_delay is {spec.batch_delay}: it must be 0 or more")
    if not 0 <= spec.replicas <= 1000:
        raise BadInput(f"replicas is {spec.replicas}: it is 0 to 1000")


async def _read(request: Request, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(await read_body(request.receive, _BODY), type=type_)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"the body is not what {request.url.path} takes: {error}") from None


def _json(value: object, status_code: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code, media_type="application/json")
