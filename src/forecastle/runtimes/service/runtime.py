"""The hooks of a service class: one request at a time, through its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
from werkzeug.datastructures import MIMEAccept

from forecastle.errors import LoadFailed, PredictionFailed, RequestError
from forecastle.hooks import defaults
from forecastle.messages import Part
from forecastle.models.artifact import Artifact
from forecastle.models.mms import SIGNATURE
from forecastle.models.signature import Signature, parse_signature
from forecastle.runtimes.service.arrays import plain
from forecastle.runtimes.service.base import ModelService, Steps, replaced, steps
from forecastle.runtimes.service.find import make
from forecastle.runtimes.service.inputs import ServiceReader

_OF_INPUTS = (ValueError, LookupError)
"""What a first step raises at a value that is not as it should be: the client's fault, as it is in ``input_fn``."""


class Answer(NamedTuple):
    """A service's answer, which may be ``None``."""

    value: Any


class ServiceRuntime:
    """Hooks over a service, made when the model is loaded. ``ping_fn`` is there if the class has a ``ping``."""

    name = "service"

    def __init__(self, service_class: type[ModelService], artifact: Artifact) -> None:
        self._class = service_class
        self._artifact = artifact
        self.signature: Signature | None = None
        self.ping_fn: Callable[[Any], Any] | None = None

    def model_fn(self, model_dir: str) -> ModelService:  # noqa: ARG002 -- the artifact says where it lies
        """Make the service; the other hooks may be called from then on.

        Raises:
            LoadFailed: it has no signature.
        """
        service = make(self._class, self._artifact)
        document = service.signature
        if document is None:
            raise LoadFailed(f"the service {self._class.__name__} has no signature, and there is no {SIGNATURE}")
        self.signature = parse_signature(msgspec.json.encode(document), f"the signature of {self._class.__name__}")
        self._reader = ServiceReader(self.signature)
        self._steps: Steps = steps(service)
        if "ping" in replaced(service):
            self.ping_fn = lambda _: service.ping()
        return service

    def inputs_fn(self, parts: list[Part]) -> Any:
        """Read a request's parts, and take the service's first step."""
        values = self._reader.read(parts)
        if self._steps.preprocess is None:
            return values
        return self._called("preprocess", self._steps.preprocess, values)

    def predict_fn(self, data: Any, model: Any) -> Answer:  # noqa: ARG002
        """Take the other steps."""
        result = self._called("inference", self._steps.inference, data)
        if self._steps.postprocess is not None:
            result = self._called("postprocess", self._steps.postprocess, result)
        return Answer(result)

    def output_fn(self, prediction: Any, accept: MIMEAccept) -> tuple[bytes, str]:
        """Write the answer as JSON, or a picture's bytes as what the signature says they are."""
        value = prediction.value if isinstance(prediction, Answer) else prediction
        if isinstance(value, bytes) and self.signature is not None and self.signature.output_type.startswith("image/"):
            return value, self.signature.output_type
        return defaults.output_fn(_plain(value), accept)

    def _called(self, step: str, function: Callable[[Any], Any], value: Any) -> Any:
        """Take a step; what it raises names it."""
        try:
            return function(value)
        except Exception as error:
            if isinstance(error, RequestError | MemoryError) or (
                step == "preprocess" and isinstance(error, _OF_INPUTS)
            ):
                raise
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise PredictionFailed(f"the step {step} of the service {self._class.__name__} raised {text}") from error


def _plain(value: Any) -> Any:
    """Turn arrays of MXNet's into numpy's, and keys of a number into Python's, as JSON's names are made of these."""
    if isinstance(value, dict):
        return {_key(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return plain(value) if hasattr(value, "asnumpy") else value


def _key(key: Any) -> Any:
    key = plain(key) if hasattr(key, "asnumpy") else key
    return key.item() if isinstance(key, np.generic | np.ndarray) and key.size == 1 else key
