"""The hooks: the functions a user writes to serve a model, specified for pluggy.

The project name is ``inference_server``, so a function marked by that package's ``plugin_hook`` or by ours is found by
both. Every hook is *firstresult*: the first implementation that returns something other than ``None`` answers, and when
none does, the runtime's or the default one does (``defaults.py``).

Where they run: all in the replica, in one thread, never two at a time.
"""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any, Protocol

import pluggy
from werkzeug.datastructures import MIMEAccept

PROJECT = "inference_server"

hookspec = pluggy.HookspecMarker(PROJECT)
plugin_hook = pluggy.HookimplMarker(PROJECT)


class BatchStrategy(Enum):
    """How SageMaker's batch transform may fill a body: with one record, or with several."""

    SINGLE_RECORD = "SingleRecord"
    MULTI_RECORD = "MultiRecord"


class Specification(Protocol):
    """The eight hooks of inference-server, one of our own and three of SageMaker's toolkit."""

    @hookspec(firstresult=True)
    def pre_model_fn(self, model_dir: str) -> None:
        """Do what must be done before the model is loaded."""

    @hookspec(firstresult=True)
    def model_fn(self, model_dir: str) -> Any:
        """Load and return the model. Called once per replica, before it is ready."""

    @hookspec(firstresult=True)
    def model_warmup_fn(self, model_dir: str, model: Any) -> None:
        """Do what must be done with the model once it is loaded, before the replica is ready."""

    @hookspec(firstresult=True)
    def input_fn(self, input_data: bytes, content_type: str) -> Any:
        """Turn one body into the data ``predict_fn`` takes. ``content_type`` is the client's, with its parameters."""

    @hookspec(firstresult=True)
    def predict_fn(self, data: Any, model: Any) -> Any:
        """Return the prediction for one request's data."""

    @hookspec(firstresult=True)
    def predict_batch_fn(self, batch: list[Any], model: Any) -> list[Any]:
        """Return one prediction for each element of ``batch``, in order: requests that wait together come together.

        When it raises, or returns another number, its elements are given to it again one at a time, so that one bad
        input fails alone.
        """

    @hookspec(firstresult=True)
    def output_fn(self, prediction: Any, accept: MIMEAccept) -> tuple[bytes, str]:
        """Write the prediction as bytes, and say as which content type."""

    @hookspec(firstresult=True)
    def transform_fn(self, model: Any, data: bytes, content_type: str, accept: str) -> Any:
        """Do the work of ``input_fn``, ``predict_fn`` and ``output_fn`` in one; it excludes those three.

        ``accept`` is the Accept header as a string; the result is the body, or the body and its content type.
        """

    @hookspec(firstresult=True)
    def ping_fn(self, model: Any) -> bool:
        """Say whether the model is well. Called for each ``/ping`` while the replica is idle; be quick."""

    @hookspec(firstresult=True)
    def batch_strategy(self) -> BatchStrategy:
        """Answer ``/execution-parameters``: how a batch transform fills a body."""

    @hookspec(firstresult=True)
    def max_concurrent_transforms(self) -> int:
        """Answer ``/execution-parameters``: how many requests a batch transform sends at a time."""

    @hookspec(firstresult=True)
    def max_payload_in_mb(self) -> int:
        """Answer ``/execution-parameters``: the largest body, in MB, that a batch transform sends."""


__all__ = ["HOOKS", "PROJECT", "BatchStrategy", "MIMEAccept", "Specification", "arguments", "hookspec", "plugin_hook"]

HOOKS: tuple[str, ...] = tuple(name for name in vars(Specification) if not name.startswith("_"))
"""The hooks' names, in the order in which a request meets them."""


def arguments(hook: str) -> list[str]:
    """Return the names of a hook's arguments, in their order."""
    return list(inspect.signature(getattr(Specification, hook)).parameters)[1:]
