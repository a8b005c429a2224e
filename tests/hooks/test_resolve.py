from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forecastle import plugin_hook
from forecastle.errors import BadInput, BadOutput, LoadFailed, NotAcceptable
from forecastle.hooks.discover import new_manager
from forecastle.hooks.resolve import Hooks, load
from forecastle.hooks.spec import BatchStrategy
from forecastle.messages import Part


def loaded(*plugins: dict[str, Any], runtime: object | None = None) -> Hooks:
    manager = new_manager()
    for plugin in plugins:
        manager.register(SimpleNamespace(**{name: plugin_hook(function) for name, function in plugin.items()}))
    return load(manager, runtime, "/models/here")


def raw(data: bytes, content_type: str = "") -> list[Part]:
    return [Part("", content_type, data)]


def test_with_no_hook_a_model_answers_with_its_input() -> None:
    hooks = loaded()
    assert hooks.write(hooks.predict(hooks.read(raw(b"x"))), "*/*") == (b"x", "application/octet-stream")
    assert (hooks.batch_strategy, hooks.max_concurrent_transforms, hooks.max_payload_in_mb) == (
        BatchStrategy.MULTI_RECORD,
        1,
        6,
    )
    assert hooks.ping is None


def test_the_model_is_what_model_fn_returns_and_the_default_prediction_calls_it() -> None:
    hooks = loaded({"model_fn": lambda model_dir: lambda data: (model_dir, data)})
    assert hooks.predict(1) == ("/models/here", 1)


def test_json_is_read_by_content_type() -> None:
    assert loaded().read(raw(b'{"a": [1, null]}', "application/json; charset=utf-8")) == {"a": [1, None]}


def test_several_parts_are_read_each_by_its_type_into_a_dict() -> None:
    parts = [Part("a", "application/json", b"[1]"), Part("b", "text/plain", b"hi")]
    assert loaded().read(parts) == {"a": [1], "b": "hi"}


def test_hooks_of_two_plugins_work_together() -> None:
    hooks = loaded({"predict_fn": lambda data, model: data * 2}, {"input_fn": lambda input_data: input_data * 3})
    assert hooks.predict(hooks.read(raw(b"x"))) == b"xxxxxx"


def test_a_hook_that_returns_none_leaves_it_to_the_next() -> None:
    hooks = loaded({"output_fn": lambda prediction: None})
    assert hooks.write({"a": 1}, "*/*") == (b'{"a":1}', "application/json")


def test_a_user_overrides_a_runtimes_hooks_one_at_a_time() -> None:
    runtime = SimpleNamespace(
        model_fn=lambda model_dir: "runtime's model",
        predict_fn=lambda data, model: f"{model} {data}",
        output_fn=lambda prediction, accept: (b"runtime", "text/plain"),
    )
    hooks = loaded({"output_fn": lambda prediction: (prediction.upper(), "text/x")}, runtime=runtime)
    assert hooks.write(hooks.predict("d"), "*/*") == (b"RUNTIME'S MODEL D", "text/x")


def test_a_users_narrow_hook_hides_the_runtimes_wide_one() -> None:
    runtime = SimpleNamespace(
        inputs_fn=lambda parts: "wide", predict_batch_fn=lambda batch, model: ["wide" for _ in batch]
    )
    assert loaded(runtime=runtime).read(raw(b"")) == "wide"
    hooks = loaded({"input_fn": lambda input_data: "narrow", "predict_fn": lambda data: "narrow"}, runtime=runtime)
    assert hooks.read(raw(b"")) == "narrow"
    assert hooks.predict_batch is None


def test_an_assertion_about_accept_is_not_acceptable_and_any_other_is_the_hooks_fault() -> None:
    def output_fn(prediction: Any, accept: Any) -> tuple[bytes, str]:
        assert accept.accept_json
        return b"{}", "application/json"

    def broken(prediction: Any, accept: Any) -> tuple[bytes, str]:
        raise AssertionError("never")

    hooks = loaded({"output_fn": output_fn})
    assert hooks.write(1, "*/*") == (b"{}", "application/json")
    assert hooks.write(1, "application/json;q=0.5, text/csv") == (b"{}", "application/json")
    with pytest.raises(NotAcceptable, match="text/csv"):
        hooks.write(1, "text/csv")
    with pytest.raises(AssertionError):
        loaded({"output_fn": broken}).write(1, "*/*")


@pytest.mark.parametrize("result", [b"only a body", ("x", 3), (1, "text/plain"), ("a", "b", "c"), {"a": 1}])
def test_what_is_no_body_and_type_is_a_bad_output(result: Any) -> None:
    with pytest.raises(BadOutput, match=r"output_fn must return \(bytes, content type\)"):
        loaded({"output_fn": lambda prediction: result}).write(1, "*/*")


def test_text_is_written_as_utf8() -> None:
    assert loaded({"output_fn": lambda prediction: ("é", "text/plain")}).write(1, "*/*") == ("é".encode(), "text/plain")


def test_transform_fn_excludes_the_three_it_replaces() -> None:
    with pytest.raises(LoadFailed, match="transform_fn replaces"):
        loaded({"transform_fn": lambda model, data: data, "predict_fn": lambda data: data})


def test_transform_fn_may_return_the_body_alone() -> None:
    transform = loaded({"transform_fn": lambda model, data, content_type, accept: data + accept.encode()}).transform
    assert transform is not None
    assert transform(raw(b"x"), "text/csv") == (b"xtext/csv", "text/csv")
    assert transform(raw(b"x"), "*/*") == (b"x*/*", "application/json")
    with pytest.raises(BadInput):
        transform(raw(b"") * 2, "*/*")


def test_a_ping_fn_is_called_with_the_model() -> None:
    ping = loaded({"model_fn": lambda: "m", "ping_fn": lambda model: model == "m"}).ping
    assert ping is not None
    assert ping()
