"""The hooks of a handler: a request's fields as it takes them, its batch, and each answer with its status and headers.

https://github.com/awslabs/multi-model-server/blob/master/docs/custom_service.md
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from werkzeug.datastructures import MIMEAccept

from forecastle import media
from forecastle.errors import BadInput, BadOutput, PredictionFailed, RequestError
from forecastle.hooks.current import CurrentRequest, current_request
from forecastle.messages import Part
from forecastle.models.artifact import Artifact
from forecastle.models.mar import is_mar, read_mar
from forecastle.runtimes.handler import faults
from forecastle.runtimes.handler.context import CONTENT_TYPE, Context
from forecastle.runtimes.handler.find import Handle, find_handler

BODY = "body"
"""The key of a body that is no form."""


class Item(NamedTuple):
    """A request as a handler gets it: its fields, and what their content types are; ``request`` is who asked."""

    request: CurrentRequest
    fields: dict[str, Any]
    types: dict[str, str]


class Answer(NamedTuple):
    """What a handler gave for a request, and the content type that it said, or empty."""

    value: Any
    content_type: str


class HandlerRuntime:
    """Hooks over a handler. A batch is given to it together only where a size of batches was asked for."""

    name = "handler"

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._name = Path(artifact.source).stem
        self._batch_size = 1
        self._shown = artifact.service or "of the archive"
        self.predict_batch_fn: Callable[[list[Item], Any], list[Answer]] | None = None

    def serve_as(self, name: str, batch_size: int) -> None:
        """Learn under which name and in which batches the model is served, before it is loaded.

        Many handlers answer the first request of a batch alone, so that one together is only for those who ask for it.
        """
        self._name = name or self._name
        self._batch_size = max(1, batch_size)

    def model_fn(self, model_dir: str) -> Handle:
        """Import the handler and let it load its model.

        Raises:
            LoadFailed: there is no such handler.
        """
        directory = Path(model_dir)
        manifest = read_mar(directory, self._artifact.source).manifest if is_mar(directory) else {}
        self._context = Context(self._name, model_dir, manifest, self._batch_size)
        self._handle = find_handler(self._artifact.service, directory, self._context)
        if self._batch_size > 1:
            self.predict_batch_fn = lambda batch, _: self._answers(batch)
        return self._handle

    def inputs_fn(self, parts: list[Part]) -> Item:
        """Read a request: one key for each field of a form, or ``body``; JSON parsed, text as such, else a bytearray.

        Raises:
            BadInput: it is not the JSON that it says, or a field comes twice.
        """
        fields: dict[str, Any] = {}
        types: dict[str, str] = {}
        for part in parts:
            key = part.name or BODY
            if key in fields:
                raise BadInput(f"the field {key[:100]!r} was sent twice; send each once")
            fields[key] = _decoded(part)
            if part.content_type:
                types[part.name or CONTENT_TYPE] = part.content_type
        return Item(current_request(), fields, types)

    def predict_fn(self, data: Item, model: Any) -> Answer:  # noqa: ARG002
        """Give the handler one request."""
        return self._answers([data])[0]

    def output_fn(self, prediction: Answer, accept: MIMEAccept) -> tuple[bytes, str]:  # noqa: ARG002 -- it decides
        """Write what the handler gave: bytes as they are, text as UTF-8, anything else as JSON.

        Raises:
            PredictionFailed: it cannot be written as JSON.
        """
        value, content_type = prediction
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value), content_type or media.BYTES
        if isinstance(value, str):
            return value.encode(), content_type or media.TEXT
        try:
            return media.encode(_plain(value), media.JSON), content_type or media.JSON
        except BadOutput as error:
            text = f"Unsupported model output data type: the handler {self._shown}: {error.message}"
            raise PredictionFailed(text, status=faults.FAILED) from None

    def _answers(self, batch: list[Item]) -> list[Answer]:
        context = self._context
        context.enter([(item.request, item.types) for item in batch])
        context.metrics.enter()
        try:
            output = self._handle([item.fields for item in batch], context)
        except faults.PredictionException as error:
            raise faults.chosen(error, self._shown) from None
        except (RequestError, MemoryError):
            raise
        except Exception as error:
            raise faults.raised(error, self._shown) from error
        answers = []
        for item, value, processor in zip(
            batch, faults.checked(output, len(batch), self._shown), context.request_processor, strict=True
        ):
            headers = processor.get_response_headers()
            answers.append(Answer(value, headers.pop(CONTENT_TYPE, "")))
            item.request.reply_headers.update(headers)
            item.request.status = processor.status
        return answers


def _decoded(part: Part) -> Any:
    if media.is_json(part.content_type) or part.content_type.startswith("text"):
        kind = part.content_type if media.is_json(part.content_type) else _as_text(part.content_type)
        return media.decode(part.data, kind)
    return bytearray(part.data)


def _as_text(content_type: str) -> str:
    """Let every kind of text be text, CSV too, which has a codec."""
    _, semicolon, parameters = content_type.partition(";")
    return f"text/plain{semicolon}{parameters}"


def _plain(value: Any) -> Any:
    """Turn what has a ``tolist`` and is not numpy's, such as a tensor of PyTorch's, into lists."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "detach") else value
