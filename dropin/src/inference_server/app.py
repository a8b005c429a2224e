"""The WSGI application of the SageMaker container contract: one model, in the WSGI server's own process.

A request that fails is answered as everywhere in Forecastle: JSON with code, type, message and request id.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from werkzeug import Request, Response

from forecastle.errors import MethodNotAllowed, NotFound, RequestError
from forecastle.hooks.current import CurrentRequest
from forecastle.http.errors import InternalError, error_reply, shortened
from forecastle.http.request_id import request_id
from forecastle.messages import Part
from forecastle.replica.executor import Begun, Executor, Job
from inference_server.plugins import Loaded, loaded

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

logger = logging.getLogger(__name__)

MODEL_DIR = "forecastle.model_dir"
"""The key of the WSGI environment by which a test names another model directory."""

_FOREVER = 1e12


def create_app() -> WSGIApplication:
    """Return the application, for a WSGI server: ``gunicorn "inference_server:create_app()"``."""
    return _app


def warmup() -> None:
    """Load the model now rather than with the first request."""
    loaded()


def _app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    request = Request(environ)
    id_ = request_id(request.headers.get("X-Request-Id", "").encode("latin-1") or None)
    try:
        response = _route(request)(request, id_)
    except RequestError as error:
        response = _failed(error, id_)
    except Exception:
        logger.exception("request %s to %s failed inside the server", id_, request.path)
        response = _failed(InternalError(), id_)
    response.headers["X-Request-Id"] = id_
    return response(environ, start_response)


def _route(request: Request) -> Callable[[Request, str], Response]:
    found = _ROUTES.get(request.path)
    path = shortened(request.path)
    if found is None:
        raise NotFound(f"nothing is served at {path}: there are {', '.join(_ROUTES)}")
    method, handler = found
    if request.method != method and (request.method, method) != ("HEAD", "GET"):
        raise MethodNotAllowed(f"{path} takes {method}, this was {shortened(request.method)}", allowed=method)
    return handler


def _failed(error: RequestError, id_: str) -> Response:
    status, headers, body = error_reply(error, id_)
    return Response(body, status, [(name.decode(), value.decode()) for name, value in headers])


def _ping(request: Request, _: str) -> Response:
    model = _model(request)
    # While a prediction runs nobody waits for it: that is the sign of life that was asked for.
    if model.hooks.ping is None or not model.lock.acquire(blocking=False):
        return Response(status=200)
    try:
        return Response(status=200 if model.hooks.ping() else 503)
    finally:
        model.lock.release()


def _invocations(request: Request, id_: str) -> Response:
    model = _model(request)
    headers = {name.lower(): value for name, value in request.headers.items() if name.lower().startswith("x-")}
    seen = CurrentRequest(id_, headers)
    part = Part("", request.headers.get("Content-Type", ""), request.get_data())
    job = Job(id_, [part], request.headers.get("Accept") or "*/*", time.monotonic() + _FOREVER, None, seen)
    with model.lock:
        (answer,) = Executor(model.hooks).answer([job])
    if isinstance(answer, RequestError):
        raise answer
    if isinstance(answer, Begun):
        response = Response(_pieces(answer, model), mimetype=answer.content_type)
    else:
        body, content_type = answer
        response = Response(body, mimetype=content_type)
    response.headers.update(seen.reply_headers)
    return response


def _pieces(answer: Begun, model: Loaded) -> Iterator[bytes]:
    """Make a body while it is sent; the lock is held for each piece, so that the hooks of others run in between."""
    yield answer.first
    while True:
        with model.lock:
            piece = next(answer.rest, None)
        if piece is None:
            return
        if isinstance(piece, RequestError):
            raise piece  # the server closes the connection too early, as HTTP has it
        yield piece


def _execution_parameters(request: Request, _: str) -> Response:
    hooks = _model(request).hooks
    told: dict[str, Any] = {
        "BatchStrategy": hooks.batch_strategy.value,
        "MaxConcurrentTransforms": hooks.max_concurrent_transforms,
        "MaxPayloadInMB": hooks.max_payload_in_mb,
    }
    return Response(msgspec.json.encode(told), mimetype="application/json")


def _model(request: Request) -> Loaded:
    return loaded(request.environ.get(MODEL_DIR))


_ROUTES: dict[str, tuple[str, Callable[[Request, str], Response]]] = {
    "/ping": ("GET", _ping),
    "/invocations": ("POST", _invocations),
    "/execution-parameters": ("GET", _execution_parameters),
}
