"""Where ``inference_server`` promises what its namesake does. Run against both; it knows nothing of either's inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import inference_server
from inference_server import testing


class Json:
    CONTENT_TYPE = "application/json"
    ACCEPT = ("application/json",)

    def serialize(self, data: Any) -> bytes:
        return json.dumps(data).encode()

    def deserialize(self, stream: Any, content_type: str) -> Any:
        assert content_type == self.ACCEPT[0]
        with stream:
            return json.loads(stream.read())


def forecast(plugin: Any) -> Any:
    return plugin(
        model_fn=lambda model_dir: lambda location: {"location": location, "sea_state": "Rough"},
        input_fn=lambda input_data, content_type: json.loads(input_data)["location"],
        output_fn=lambda prediction, accept: (json.dumps(prediction).encode(), "application/json"),
    )


def test_the_names_are_there() -> None:
    for name in ("BatchStrategy", "MIMEAccept", "create_app", "plugin_hook", "warmup"):
        assert name in inference_server.__all__
        assert hasattr(inference_server, name)
    assert [strategy.value for strategy in inference_server.BatchStrategy] == ["SingleRecord", "MultiRecord"]
    assert inference_server.BatchStrategy.SINGLE_RECORD.value == "SingleRecord"


def test_without_a_plugin_bytes_pass_through_whatever_their_type(plugin: Any) -> None:
    for content_type in ("application/json", "text/csv", "application/octet-stream", "image/png"):
        response = testing.client().post("/invocations", data=b'{"a": 1}\xff', content_type=content_type)
        assert response.status_code == 200
        assert response.data == b'{"a": 1}\xff'
        assert response.headers["content-type"] == "application/octet-stream"
    assert testing.predict(b"as it is") == b"as it is"


def test_ping_is_200_with_an_empty_body(plugin: Any) -> None:
    response = testing.client().get("/ping")
    assert (response.status_code, response.data) == (200, b"")


@pytest.mark.parametrize(("well", "status"), [(True, 200), (False, 503), (1, 200), (0, 503)])
def test_ping_says_what_ping_fn_says_of_the_model(plugin: Any, well: Any, status: int) -> None:
    seen = []

    def ping_fn(model: Any) -> Any:
        seen.append(model)
        return well

    plugin(model_fn=lambda model_dir: "the model", ping_fn=ping_fn)
    assert testing.client().get("/ping").status_code == status
    assert seen == ["the model"]


def test_execution_parameters_have_their_defaults_and_their_types(plugin: Any) -> None:
    response = testing.client().get("/execution-parameters")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json == {"BatchStrategy": "MultiRecord", "MaxConcurrentTransforms": 1, "MaxPayloadInMB": 6}


def test_execution_parameters_are_what_the_hooks_say(plugin: Any) -> None:
    plugin(
        batch_strategy=lambda: inference_server.BatchStrategy.SINGLE_RECORD,
        max_concurrent_transforms=lambda: 8,
        max_payload_in_mb=lambda: 12,
    )
    expected = {"BatchStrategy": "SingleRecord", "MaxConcurrentTransforms": 8, "MaxPayloadInMB": 12}
    assert testing.client().get("/execution-parameters").json == expected


def test_a_request_passes_the_hooks_in_order(plugin: Any) -> None:
    forecast(plugin)
    response = testing.client().post("/invocations", data=b'{"location": "Fair Isle"}', content_type="application/json")
    assert response.json == {"location": "Fair Isle", "sea_state": "Rough"}
    assert response.headers["content-type"] == "application/json"
    assert testing.predict({"location": "Wight"}, serializer=Json(), deserializer=Json())["location"] == "Wight"


def test_hooks_may_come_from_different_plugins(plugin: Any) -> None:
    plugin(model_fn=lambda model_dir: str.upper)
    plugin(input_fn=lambda input_data, content_type: input_data.decode())
    plugin(output_fn=lambda prediction, accept: (prediction.encode(), "application/x-text"))
    response = testing.client().post("/invocations", data=b"quiet")
    assert (response.data, response.headers["content-type"]) == (b"QUIET", "application/x-text")


def test_a_hook_that_answers_none_leaves_it_to_the_next(plugin: Any) -> None:
    plugin(input_fn=lambda input_data, content_type: b"second")
    plugin(input_fn=lambda input_data, content_type: None)
    assert testing.client().post("/invocations", data=b"x").data == b"second"


def test_a_hook_marked_trylast_comes_after_the_others(plugin: Any) -> None:
    plugin(input_fn=lambda input_data, content_type: b"first")

    def input_fn(input_data: bytes, content_type: str) -> bytes:
        return b"late"

    late = type("Late", (), {"input_fn": staticmethod(inference_server.plugin_hook(trylast=True)(input_fn))})
    testing.plugin_manager().register(late)
    try:
        assert testing.client().post("/invocations", data=b"x").data == b"first"
    finally:
        testing.plugin_manager().unregister(late)


@pytest.mark.parametrize(
    ("header", "json_accepted", "best"),
    [
        ("application/json", True, "application/json"),
        ("text/csv;q=0.5, application/json", True, "application/json"),
        ("text/csv", False, "text/csv"),
        ("*/*", True, "*/*"),
        ("application/json;q=0.2, text/csv;q=0.9", True, "text/csv"),
    ],
)
def test_output_fn_sees_what_the_client_accepts(plugin: Any, header: str, json_accepted: bool, best: str) -> None:
    seen: list[Any] = []

    def output_fn(prediction: Any, accept: Any) -> Any:
        seen.append((isinstance(accept, inference_server.MIMEAccept), accept.accept_json, accept.best))
        return b"", "application/json"

    plugin(output_fn=output_fn)
    testing.client().post("/invocations", data=b"x", headers={"Accept": header})
    assert seen == [(True, json_accepted, best)]


@pytest.mark.parametrize("content_type", ["application/json", "text/csv; charset=utf-8", "Text/CSV; header=present"])
def test_input_fn_sees_the_content_type_with_its_parameters(plugin: Any, content_type: str) -> None:
    seen: list[str] = []

    def input_fn(input_data: bytes, content_type: str) -> bytes:
        seen.append(content_type)
        return input_data

    plugin(input_fn=input_fn)
    testing.client().post("/invocations", data=b"x", headers={"Content-Type": content_type})
    assert seen == [content_type]


def test_a_text_goes_out_as_utf_8(plugin: Any) -> None:
    plugin(output_fn=lambda prediction, accept: ("é".encode(), "text/plain"))
    assert testing.client().post("/invocations", data=b"x").headers["content-type"] == "text/plain; charset=utf-8"


def test_the_model_is_loaded_once_and_by_warmup_before_the_first_request(plugin: Any) -> None:
    loaded: list[str] = []

    def model_fn(model_dir: str) -> Any:
        loaded.append(model_dir)
        return bytes.upper

    plugin(model_fn=model_fn)
    inference_server.warmup()
    assert loaded == ["/opt/ml/model"]
    assert [testing.client().post("/invocations", data=b"x").data for _ in range(2)] == [b"X", b"X"]
    assert len(loaded) == 1


def test_model_fn_gets_the_directory_that_a_test_names(plugin: Any, tmp_path: Path) -> None:
    (tmp_path / "word").write_text("found")
    plugin(model_fn=lambda model_dir: lambda data: (Path(model_dir) / "word").read_bytes())
    assert testing.predict(b"", model_dir=tmp_path) == b"found"
    plugin()  # another plugin: the model is made anew by both
    assert testing.post_invocations(model_dir=tmp_path, data=b"").data == b"found"


def test_a_path_that_is_none_of_the_three_is_not_found(plugin: Any) -> None:
    for path in ("/", "/pong", "/invocations/", "/ping/x"):
        assert testing.client().get(path).status_code == 404


def test_what_is_registered_can_be_told(plugin: Any) -> None:
    found = forecast(plugin)
    assert testing.plugin_is_registered(found)
    assert not testing.plugin_is_registered(Json)
    assert testing.hookimpl_is_valid(found.input_fn)

    @inference_server.plugin_hook
    def input_fn(input_data: bytes, content_type: str) -> bytes:
        return input_data

    @inference_server.plugin_hook
    def no_such_hook() -> None: ...

    assert not testing.hookimpl_is_valid(input_fn)
    assert not testing.hookimpl_is_valid(no_such_hook)


def test_the_managers_hooks_can_be_called_and_have_their_defaults() -> None:
    hook = testing.plugin_manager().hook
    assert hook.input_fn(input_data=b"x", content_type="a/b") == b"x"
    assert hook.model_fn(model_dir="/nowhere")(b"y") == b"y"
    assert hook.predict_fn(data=b"z", model=bytes.upper) == b"Z"
    assert hook.output_fn(prediction=b"p", accept=None) == (b"p", "application/octet-stream")
    assert hook.ping_fn(model=None) is True
    assert hook.batch_strategy() is inference_server.BatchStrategy.MULTI_RECORD
    assert (hook.max_concurrent_transforms(), hook.max_payload_in_mb()) == (1, 6)


def test_post_invocations_insists_on_success(plugin: Any) -> None:
    def output_fn(prediction: Any, accept: Any) -> Any:
        raise RuntimeError("broken")

    plugin(output_fn=output_fn)
    with pytest.raises(Exception):  # noqa: B017, PT011 -- one raises what the hook did, the other for the status
        testing.post_invocations(data=b"x")
