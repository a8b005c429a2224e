"""From a user's hooks, a runtime's and the defaults to the few callables that a replica calls.

The order of precedence is user, runtime, default, one hook at a time. Two hooks have a wider form, which takes more at
once (``inputs_fn`` of a runtime takes all parts of a request, ``predict_batch_fn`` a whole batch): a user who overrides
the narrow form thereby hides the runtime's wide one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pluggy
from werkzeug.datastructures import MIMEAccept

from forecastle import media
from forecastle.errors import BadInput, BadOutput, LoadFailed, NotAcceptable
from forecastle.hooks import defaults
from forecastle.hooks.spec import BatchStrategy
from forecastle.hooks.streaming import Stream, is_stream, of_elements, of_pieces, yields
from forecastle.messages import Part

Body = tuple[bytes, str] | Stream
"""What goes to the client: all of it and its content type, or pieces that are yet to be made."""


@dataclass(frozen=True)
class Hooks:
    """A loaded model as a replica sees it: what to call, in order, for each request.

    ``predict_batch`` is ``None`` where the model predicts one request at a time. ``transform`` takes the place of
    the three steps. What writes may give the body in pieces. ``ping`` is ``None`` where nobody wrote a ``ping_fn``.
    """

    read: Callable[[list[Part]], Any]
    predict: Callable[[Any], Any]
    predict_batch: Callable[[list[Any]], list[Any]] | None
    write: Callable[[Any, str], Body]
    transform: Callable[[list[Part], str], Body] | None
    ping: Callable[[], bool] | None
    batch_strategy: BatchStrategy
    max_concurrent_transforms: int
    max_payload_in_mb: int


def load(
    manager: pluggy.PluginManager, runtime: object | None, model_dir: str, fallback: object | None = None
) -> Hooks:
    """Resolve every hook and load the model, once.

    ``runtime`` offers any of the hooks, and ``inputs_fn``, as methods; ``fallback`` does where the user's own
    ``model_fn`` made a model that the runtime does not know, or there is no runtime.

    Raises:
        LoadFailed: the hooks contradict each other.
    """
    chain = _Chain(manager, runtime or fallback)
    transform = chain.user("transform_fn")
    excluded = [name for name in ("input_fn", "predict_fn", "output_fn") if chain.user(name)]
    if transform is not None and excluded:
        raise LoadFailed(f"transform_fn replaces input_fn, predict_fn and output_fn; found it beside {excluded[0]}")
    model, chain = _model(chain, model_dir, fallback)
    predict_fn, output_fn = chain.resolve("predict_fn"), chain.resolve("output_fn")
    predict_batch_fn = chain.wide("predict_batch_fn", unless="predict_fn")
    ping_fn = chain.own("ping_fn")
    return Hooks(
        read=chain.wide("inputs_fn", unless="input_fn") or _reader(chain.resolve("input_fn")),
        predict=lambda data: predict_fn(data, model),
        predict_batch=None if predict_batch_fn is None else lambda batch: predict_batch_fn(batch, model),
        write=_writer(output_fn, own=chain.user("output_fn") is not None, whole=chain.yields("output_fn")),
        transform=None if transform is None else _transformer(transform, model),
        ping=None if ping_fn is None else lambda: bool(ping_fn(model)),
        batch_strategy=BatchStrategy(chain.resolve("batch_strategy")()),
        max_concurrent_transforms=int(chain.resolve("max_concurrent_transforms")()),
        max_payload_in_mb=int(chain.resolve("max_payload_in_mb")()),
    )


def _model(chain: _Chain, model_dir: str, fallback: object | None) -> tuple[Any, _Chain]:
    """Load the model. One of a user's own is served by the runtime if that knows its kind, else by the fallback."""
    before, user, after = (chain.user(name) for name in ("pre_model_fn", "model_fn", "model_warmup_fn"))
    if before is not None:
        before(model_dir)
    model = None if user is None else user(model_dir)
    if model is None:
        model = chain.resolve("model_fn")(model_dir)
    else:
        adopt: Callable[[Any], bool] | None = getattr(chain.runtime, "adopt_fn", None)
        if adopt is None or not adopt(model):
            chain = _Chain(chain.manager, fallback)
    if after is not None:
        after(model_dir, model)
    return model, chain


class _Chain:
    """The order of precedence for each hook."""

    def __init__(self, manager: pluggy.PluginManager, runtime: object | None) -> None:
        self.manager = manager
        self.runtime = runtime

    def user(self, name: str) -> Callable[..., Any] | None:
        """Return the user's hook, called by position; of several, pluggy's order and its wrappers hold."""
        caller: pluggy.HookCaller | None = getattr(self.manager.hook, name, None)
        implementations = caller.get_hookimpls() if caller is not None else []
        if caller is None or caller.spec is None or not implementations:
            return None
        arguments = caller.spec.argnames
        if len(implementations) == 1 and list(implementations[0].argnames) == list(arguments):
            function: Callable[..., Any] = implementations[0].function
            return function
        return lambda *args: caller(**dict(zip(arguments, args, strict=True)))

    def yields(self, name: str) -> bool:
        """Say whether the user's hook is a generator function."""
        caller: pluggy.HookCaller | None = getattr(self.manager.hook, name, None)
        return caller is not None and any(yields(found.function) for found in caller.get_hookimpls())

    def own(self, name: str) -> Callable[..., Any] | None:
        """Return the hook of the user or the runtime, if either has one."""
        user, runtime = self.user(name), getattr(self.runtime, name, None)
        if user is None or runtime is None:
            return user or runtime
        return _first(user, runtime)

    def resolve(self, name: str) -> Callable[..., Any]:
        """Return the hook, falling back on the default."""
        own, default = self.own(name), getattr(defaults, name)
        return default if own is None else _first(own, default)

    def wide(self, name: str, *, unless: str) -> Callable[..., Any] | None:
        """Return a hook's wide form, which a user's narrow form hides where the user has no wide one."""
        user = self.user(name)
        if user is not None or self.user(unless) is not None:
            return user
        return getattr(self.runtime, name, None)


def _first(first: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        result = first(*args)
        return then(*args) if result is None else result

    return call


def _reader(input_fn: Callable[[bytes, str], Any]) -> Callable[[list[Part]], Any]:
    def read(parts: list[Part]) -> Any:
        """One part is the data; several are a dict by field name, each read alone."""
        if len(parts) == 1:
            return input_fn(parts[0].data, parts[0].content_type)
        return {part.name: input_fn(part.data, part.content_type) for part in parts}

    return read


def _writer(output_fn: Callable[[Any, MIMEAccept], Any], *, own: bool, whole: bool) -> Callable[[Any, str], Body]:
    """``own``: a user wrote the hook; ``whole``: it yields, and so takes what is made while it is read."""

    def write(prediction: Any, accept: str) -> Body:
        parsed = media.accept(accept)
        if not whole and is_stream(prediction):
            if not own:
                return of_elements(prediction, parsed)
            return of_pieces((written(element, parsed, accept) for element in prediction), None, parsed)
        return written(prediction, parsed, accept)

    def written(prediction: Any, parsed: MIMEAccept, accept: str) -> Body:
        try:
            return _body(output_fn(prediction, parsed), "output_fn", parsed)
        except AssertionError as error:
            # `assert accept.accept_json` is the documented way of a hook to say that it cannot write what is accepted.
            if parsed.best == "*/*":
                raise
            raise NotAcceptable(f"the model's output_fn cannot write what the client accepts: {accept}") from error

    return write


def _transformer(transform_fn: Callable[[Any, bytes, str, str], Any], model: Any) -> Callable[[list[Part], str], Body]:
    def transform(parts: list[Part], accept: str) -> Body:
        if len(parts) != 1:
            raise BadInput(f"the model's transform_fn takes one body; found {len(parts)} parts")
        result = transform_fn(model, parts[0].data, parts[0].content_type, accept)
        parsed = media.accept(accept)
        if not isinstance(result, tuple) and not is_stream(result):
            result = (result, "application/json" if parsed.best in {None, "*/*"} else parsed.best)
        return _body(result, "transform_fn", parsed)

    return transform


def _body(result: Any, hook: str, accept: MIMEAccept) -> Body:
    """Check what a hook gave for a body: bytes (or text, which becomes UTF-8) and a content type, or pieces of it."""
    if isinstance(result, tuple) and len(result) == 2:
        body, content_type = result
        if type(body) is bytes and type(content_type) is str:
            return body, content_type
        if isinstance(body, str):
            body = body.encode()
        if isinstance(body, bytes | bytearray | memoryview) and isinstance(content_type, str):
            return bytes(body), content_type
        if is_stream(body) and isinstance(content_type, str):
            return of_pieces(body, content_type, accept)
        found = f"({type(body).__name__}, {type(content_type).__name__})"
    elif is_stream(result):
        return of_pieces(result, None, accept)
    else:
        found = type(result).__name__
    raise BadOutput(f"{hook} must return (bytes, content type); it returned {found}")
