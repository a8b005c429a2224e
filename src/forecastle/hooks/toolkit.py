"""Hooks in the manner of SageMaker's inference toolkit, as ``code/inference.py`` in a model's directory has them.

They differ from inference-server's in three things: ``accept`` is a string, the body may be returned without its
content type, and each hook may take one more argument, the context.

https://github.com/aws/sagemaker-inference-toolkit
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from werkzeug.datastructures import MIMEAccept

from forecastle.hooks.spec import arguments

DEFAULT_ACCEPT = "SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT"
"""The environment variable for the content type of answers to clients that accept anything; JSON unless set."""


class Context:
    """What a hook may take as its last argument: ``system_properties`` has ``model_dir`` and ``gpu_id`` (``None``)."""

    def __init__(self, model_dir: str) -> None:
        self.system_properties: dict[str, Any] = {"model_dir": model_dir, "gpu_id": None}


def adapted(name: str, function: Callable[..., Any], context: Context) -> Callable[..., Any]:
    """Return the hook as ours is called: by position, with the arguments of the specification."""
    taken = len(arguments(name))
    count = _positional(function)

    def call(*args: Any) -> Any:
        if count > taken:
            return function(*args, context)
        return function(*args[:count])

    if name == "output_fn":
        return lambda prediction, accept: _typed(call, prediction, accept)
    if name == "transform_fn":
        return lambda model, data, content_type, accept: call(model, data, content_type, _preferred(accept))
    return call


def _positional(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} for p in parameters)


def _typed(call: Callable[..., Any], prediction: Any, accept: MIMEAccept) -> Any:
    wanted = _preferred(accept.to_header())
    result = call(prediction, wanted)
    return result if isinstance(result, tuple) or result is None else (result, wanted)


def _preferred(accept: str) -> str:
    return os.environ.get(DEFAULT_ACCEPT, "application/json") if accept in {"", "*/*"} else accept
