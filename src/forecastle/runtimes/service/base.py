"""What every service is: one call from a request's inputs to its answer, in three steps that a class may replace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from forecastle.models.artifact import Artifact
from forecastle.models.mms import SIGNATURE
from forecastle.models.signature import Signature, format_signature, read_signature
from forecastle.runtimes.version import version


class ModelService(ABC):
    """A service: it answers requests to one model.

    ``artifact`` is what a server serves with the class; it is ``None`` where a program makes a service by itself.
    """

    artifact: ClassVar[Artifact | None] = None

    @abstractmethod
    def inference(self, data: list[Any]) -> Any:
        """Answer one request; ``data`` holds a value for each input, in the signature's order."""

    @abstractmethod
    def ping(self) -> Any:
        """Return something true if the model is well."""

    @property
    @abstractmethod
    def signature(self) -> dict[str, Any] | None:
        """The signature, as signature.json has it."""


class SingleNodeService(ModelService):
    """A service in three steps: ``_preprocess``, ``_inference``, ``_postprocess``.

    The first and the last give what they get unless a class replaces them, under these names or without the underscore.
    """

    _signature: dict[str, Any] | None = None

    def __init__(self, model_name: str, model_dir: str, manifest: Any = None, gpu: Any = None) -> None:
        self.model_name = model_name
        self.model_dir = model_dir
        self.manifest = manifest
        self.ctx = gpu
        file = Path(model_dir) / SIGNATURE
        if file.is_file():
            self._signature = as_dict(read_signature(file))

    def inference(self, data: list[Any]) -> Any:
        """Answer one request, in three steps."""
        return self.postprocess(self._inference(self.preprocess(data)))

    def preprocess(self, data: list[Any]) -> Any:
        """Make of a request's values what ``_inference`` takes."""
        return self._preprocess(data)

    def postprocess(self, data: Any) -> Any:
        """Make of what ``_inference`` gives the answer: anything that JSON can hold."""
        return self._postprocess(data)

    def ping(self) -> Any:
        """Return the version of what computes."""
        return version()

    @property
    def signature(self) -> dict[str, Any] | None:
        """The signature, as signature.json has it. The size of the batch is 1; any other 0 stands for any size."""
        return self._signature

    def _preprocess(self, data: list[Any]) -> Any:
        return data

    @abstractmethod
    def _inference(self, data: Any) -> Any: ...

    def _postprocess(self, data: Any) -> Any:
        return data


class MultiNodesService(ModelService):
    """MMS's name for services over several machines, which it never had."""


class Steps(NamedTuple):
    """What is called for one request, one after the other; ``None`` for what a service does in one with the next."""

    preprocess: Callable[[list[Any]], Any] | None
    inference: Callable[[Any], Any]
    postprocess: Callable[[Any], Any] | None


def steps(service: ModelService) -> Steps:
    """Return the steps of a service.

    A class that replaces ``inference`` and neither ``preprocess`` nor ``postprocess`` answers in one step; beside one
    of these, ``inference`` is the step between them.
    """
    own = replaced(service)
    if not isinstance(service, SingleNodeService) or ("inference" in own and not own & {"preprocess", "postprocess"}):
        return Steps(None, service.inference, None)
    inference = service.inference if "inference" in own else service._inference
    return Steps(service.preprocess, inference, service.postprocess)


def replaced(service: ModelService) -> set[str]:
    """Return which of the public methods a class has of its own."""
    names = ("preprocess", "inference", "postprocess", "ping")
    return {name for name in names if getattr(type(service), name, None) is not getattr(SingleNodeService, name)}


def as_dict(signature: Signature) -> dict[str, Any]:
    """Return a signature as services read it, the batch's size being 1."""
    document: dict[str, Any] = msgspec.json.decode(format_signature(signature))
    for tensor in (*document["inputs"], *document["outputs"]):
        tensor["data_shape"][:1] = [size or 1 for size in tensor["data_shape"][:1]]
    return document
