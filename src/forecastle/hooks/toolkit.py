"""Hooks in the manner of SageMaker's inference toolkit, as ``code/inference.py`` in a model's directory has them.

They differ from inference-server's in four things: JSON and CSV come as text, ``accept`` is a string, the body may be
returned without its content type, and each hook may take one more argument, the context.

https://github.com/aws/sagemaker-inference-toolkit
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, cast

from werkzeug.datastructures import MIMEAccept

from forecastle import media
from forecastle.hooks.current import current_request
from forecastle.hooks.spec import arguments
from forecastle.hooks.streaming import is_stream, yields

DEFAULT_ACCEPT = "SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT"
"""The environment variable for the content type of answers to clients that accept anything; JSON unless set."""


class Context:
    """What a hook may take as its last argument: ``system_properties`` has ``model_dir`` and ``gpu_id`` (``None``)."""

    def __init__(self, model_dir: str) -> None:
        self.system_properties: dict[str, Any] = {"model_dir": model_dir, "gpu_id": None}

    @property
    def request_ids(self) -> list[str]:
        """The id of the request that the hook works on."""
        return [current_request().id]

    def get_request_header(self, index: int, name: str) -> str | None:  # noqa: ARG002 -- there is one request
        """Return a header of the client's that begins with ``X-``, or ``None``."""
        return current_request().headers.get(name.lower())

    def set_response_header(self, index: int, name: str, value: str) -> None:  # noqa: ARG002
        """Answer with a header of one's own; see ``CurrentRequest.set_header``."""
        current_request().set_header(name, value)


def adapted(name: str, function: Callable[..., Any], context: Context) -> Callable[..., Any]:
    """Return the hook as ours is called: by position, with the arguments of the specification."""
    taken = len(arguments(name))
    count = _positional(function)

    def call(*args: Any) -> Any:
        if count > taken:
            return function(*args, context)
        return function(*args[:count])

    def output(prediction: Any, accept: MIMEAccept) -> Any:
        return _typed(call, prediction, accept)

    def read(data: bytes, content_type: str) -> Any:
        return call(_text(data, content_type), content_type or media.JSON)

    def transform(model: Any, data: bytes, content_type: str, accept: str) -> Any:
        return call(model, _text(data, content_type), content_type or media.JSON, _preferred(accept))

    found: Any = {"input_fn": read, "output_fn": output, "transform_fn": transform}.get(name, call)
    found.yields = yields(function)
    return cast("Callable[..., Any]", found)


def _text(data: bytes, content_type: str) -> bytes | str:
    """Return JSON and CSV as text, as the toolkit gives them to hooks; no content type is taken for JSON."""
    parsed = media.parse(content_type or media.JSON)
    return data.decode(parsed.params.get("charset", "utf-8")) if parsed.type in {media.JSON, media.CSV} else data


def _positional(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} for p in parameters)


def _typed(call: Callable[..., Any], prediction: Any, accept: MIMEAccept) -> Any:
    wanted = _preferred(accept.to_header())
    result = call(prediction, wanted)
    return result if isinstance(result, tuple) or result is None or is_stream(result) else (result, wanted)


def _preferred(accept: str) -> str:
    return os.environ.get(DEFAULT_ACCEPT, "application/json") if accept in {"", "*/*"} else accept
