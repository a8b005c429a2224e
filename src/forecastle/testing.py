"""For authors of hooks: a model in the test's own process, called step by step as a replica calls it, without HTTP.

::

    from forecastle import testing

    def test_a_place_has_its_forecast():
        model = testing.load("shipping.py")
        reply = model.predict({"location": "Fair Isle"})
        assert reply.json()["sea_state"] == "Rough"

    def test_requests_that_wait_together_get_what_each_gets_alone():
        testing.assert_batched_equals_unbatched(testing.load("shipping.py"), [{"location": "Fair Isle"}, {}])
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Protocol

import msgspec

from forecastle import media
from forecastle.errors import RequestError
from forecastle.hooks import discover
from forecastle.hooks.current import CurrentRequest
from forecastle.hooks.resolve import Hooks
from forecastle.hooks.resolve import load as load_hooks
from forecastle.messages import Part
from forecastle.models import platform
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Answer, Begun, Executor, Job
from forecastle.replica.loading import load_model

__all__ = [
    "Deserializer",
    "Model",
    "Reply",
    "Serializer",
    "assert_batched_equals_unbatched",
    "hookimpl_is_valid",
    "load",
    "predict",
]

_FOREVER = 1e12


class Reply(msgspec.Struct, frozen=True):
    """What a client would get: for an error its status and the server's JSON; the body of a stream is whole here."""

    status: int
    body: bytes
    content_type: str
    headers: dict[str, str] = {}

    def json(self) -> Any:
        """The body, read as JSON."""
        return media.decode(self.body, media.JSON)


class Model:
    """A loaded model. Its hooks run in the caller's thread."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self._executor = Executor(hooks)

    def predict(
        self,
        data: Any,
        content_type: str = media.JSON,
        accept: str = "*/*",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Answer one request. Bytes are sent as they are; anything else is written as the content type."""
        return self.predict_together([data], content_type, accept, headers)[0]

    def predict_together(
        self,
        batch: Iterable[Any],
        content_type: str = media.JSON,
        accept: str = "*/*",
        headers: Mapping[str, str] | None = None,
    ) -> list[Reply]:
        """Answer several requests as a replica does that finds them waiting: as one batch, if the model takes any."""
        seen = {name.lower(): value for name, value in (headers or {}).items()}
        jobs = [self._job(index, data, content_type, accept, seen) for index, data in enumerate(batch)]
        return [_reply(answer, job) for answer, job in zip(self._executor.answer(jobs), jobs, strict=True)]

    def ping(self) -> bool:
        """Say what ``/ping`` would: what ``ping_fn`` says, or true where there is none."""
        return self.hooks.ping is None or self.hooks.ping()

    def _job(self, index: int, data: Any, content_type: str, accept: str, headers: dict[str, str]) -> Job:
        body = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else media.encode(data, content_type)
        id_ = f"test-{index}"
        return Job(id_, [Part("", content_type, body)], accept, _FOREVER, None, CurrentRequest(id_, headers))


def load(source: str | Path | ModuleType | type | None = None, *, model_dir: str | Path | None = None) -> Model:
    """Load a model: a source as ``forecastle serve`` takes it, a module or class with hooks, or the installed packages.

    ``model_dir`` is what ``model_fn`` gets of a module, a class or the packages; SageMaker's place by default.

    Raises:
        StartError: it cannot be found, recognised or loaded.
    """
    if isinstance(source, str | Path):
        with tempfile.TemporaryDirectory() as cache:
            return Model(load_model(open_artifact(str(source), cache=Path(cache)))[0])
    directory = str(platform.model_dir() if model_dir is None else model_dir)
    manager = discover.from_entry_points() if source is None else discover.from_plugin(source, _name(source))
    return Model(load_hooks(manager, None, directory))


def assert_batched_equals_unbatched(
    model: Model, batch: Sequence[Any], content_type: str = media.JSON, accept: str = "*/*"
) -> None:
    """See that requests predicted together get what each gets alone: status, body and type, in whatever order.

    Raises:
        AssertionError: one of them does not; the message has both.
    """
    alone = [model.predict(data, content_type, accept) for data in batch]
    for order in (range(len(batch)), range(len(batch) - 1, -1, -1)):
        together = model.predict_together([batch[index] for index in order], content_type, accept)
        for index, reply in zip(order, together, strict=True):
            assert _same(reply, alone[index]), (
                f"request {index} gets {_shown(reply)} in a batch of {len(batch)}, and {_shown(alone[index])} alone"
            )


class ImplementsSerialize(Protocol):
    """A serializer of SageMaker's SDK, or one like it."""

    @property
    def CONTENT_TYPE(self) -> str: ...  # noqa: N802 -- the SDK's name

    def serialize(self, data: Any) -> bytes | str: ...


class ImplementsDeserialize(Protocol):
    """A deserializer of SageMaker's SDK, or one like it."""

    @property
    def ACCEPT(self) -> tuple[str, ...]: ...  # noqa: N802 -- the SDK's name

    def deserialize(self, stream: Any, content_type: str) -> Any: ...


class Serializer:
    """Writes data as a content type, in the manner of SageMaker's SDK."""

    def __init__(self, content_type: str = media.BYTES) -> None:
        self.CONTENT_TYPE = content_type

    def serialize(self, data: Any) -> bytes:
        """Return the data as bytes."""
        return media.encode(data, self.CONTENT_TYPE)


class Deserializer:
    """Reads a reply of one of the accepted content types, in the manner of SageMaker's SDK."""

    def __init__(self, *accept: str) -> None:
        self.ACCEPT = accept or (media.BYTES,)

    def deserialize(self, stream: BinaryIO, content_type: str) -> Any:
        """Read the stream to its end, and close it."""
        with stream:
            return media.decode(stream.read(), content_type)


def predict(
    data: Any,
    *,
    model: Model | None = None,
    serializer: ImplementsSerialize | None = None,
    deserializer: ImplementsDeserialize | None = None,
) -> Any:
    """Send data through (de)serializers, as a predictor of SageMaker's SDK does to an endpoint.

    Without a ``model``, the installed packages are one; without (de)serializers, bytes pass as they are.

    Raises:
        AssertionError: the reply is not a 200; the message has its body.
    """
    writing, reading = serializer or Serializer(), deserializer or Deserializer()
    body = writing.serialize(data)
    sent = body.encode() if isinstance(body, str) else body
    reply = (model or load()).predict(sent, writing.CONTENT_TYPE, ", ".join(reading.ACCEPT))
    assert reply.status == 200, f"{reply.status}: {reply.body.decode(errors='replace')}"
    return reading.deserialize(io.BytesIO(reply.body), reply.content_type)


def hookimpl_is_valid(function: Callable[..., Any]) -> bool:
    """Say whether a function is one of the hooks that the installed packages offer, and is called as such."""
    caller = getattr(discover.from_entry_points().hook, function.__name__, None)
    return caller is not None and function in (found.function for found in caller.get_hookimpls())


def _name(source: ModuleType | type) -> str:
    return f"the {'module' if isinstance(source, ModuleType) else 'class'} {source.__name__!r}"


def _reply(answer: Answer, job: Job) -> Reply:
    assert job.request is not None
    headers = job.request.reply_headers
    if isinstance(answer, Begun):
        pieces = [answer.first, *answer.rest]
        body = b"".join(piece for piece in pieces if isinstance(piece, bytes))
        answer = pieces[-1] if isinstance(pieces[-1], RequestError) else (body, answer.content_type)
    if isinstance(answer, RequestError):
        told = {"code": answer.status, "type": answer.type, "message": answer.message, "request_id": job.id}
        return Reply(answer.status, msgspec.json.encode(told), media.JSON)
    return Reply(200, *answer, headers)


def _same(one: Reply, other: Reply) -> bool:
    if one.status == 200 or other.status == 200:
        return one == other
    # Which hook failed may differ: predict_batch_fn in a batch, predict_fn alone.
    return one.status == other.status and one.json()["type"] == other.json()["type"]


def _shown(reply: Reply) -> str:
    return f"{reply.status} {reply.content_type} {reply.body[:200]!r}"
