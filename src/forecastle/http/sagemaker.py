"""The SageMaker container contract: ``POST /invocations``, ``GET /ping``, ``GET /execution-parameters``.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html
https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-batch-code.html
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Scope

from forecastle.errors import BadInput
from forecastle.http.contract import Contract, RequestHeaders, one, require_post
from forecastle.http.core import Core
from forecastle.http.errors import named
from forecastle.http.forms import MULTIPART, split_multipart
from forecastle.messages import Part, Response

INVOCATIONS = "/invocations"
EXECUTION_PARAMETERS = "/execution-parameters"

_TARGET_MODEL = b"x-amzn-sagemaker-target-model"


def model(core: Core, scope: Scope, headers: RequestHeaders) -> str:
    """Return the model that an invocation is for: the named one, or the only one.

    Raises:
        MethodNotAllowed: the method is not POST.
        ModelNotFound: the named model is not served.
        BadInput: none is named, and several are served.
    """
    require_post(scope)
    return choose(core, scope["query_string"], headers)


def choose(core: Core, query: bytes, headers: RequestHeaders) -> str:
    """Return the model named by ``?model_name=``, else by X-Amzn-SageMaker-Target-Model, else the only one.

    Raises:
        ModelNotFound: the named model is not served, or none is.
        BadInput: none is named, and several are served.
    """
    name = headers.get(_TARGET_MODEL, b"").decode("latin-1")
    if query:
        name = parse_qs(query.decode("latin-1")).get("model_name", [name])[0]
    if not name:
        if len(core.models) == 1:
            return next(iter(core.models))
        if core.models:
            raise BadInput(
                f"several models are served, {named(core.models)}: "
                "name one with ?model_name= or the header X-Amzn-SageMaker-Target-Model"
            )
    if name not in core.models:
        raise core.unknown(name)
    return name


def parts(body: bytes, content_type: str) -> list[Part]:
    """Return the body as one part without a name; a multipart body is split.

    Raises:
        BadInput: the multipart body is malformed.
    """
    if content_type[:19].lower() == MULTIPART:
        return split_multipart(body, content_type)
    return [Part("", content_type, body)]


def body(response: Response) -> bytes:
    """Return the answer as ``output_fn`` made it."""
    return response.body


CONTRACT = Contract(INVOCATIONS, model, one(parts), body)


def execution_parameters(core: Core) -> Route:
    """The route that tells a batch transform how to call: two integers and the name of the strategy."""

    async def endpoint(request: HttpRequest) -> JSONResponse:
        sent: Mapping[bytes, bytes] = dict(request.scope["headers"])
        info = core.models[choose(core, request.scope["query_string"], sent)].describe()
        return JSONResponse(
            {
                "BatchStrategy": info.batch_strategy,
                "MaxConcurrentTransforms": info.max_concurrent_transforms,
                "MaxPayloadInMB": info.max_payload_in_mb,
            }
        )

    return Route(EXECUTION_PARAMETERS, endpoint)
