"""Where ``inference_server`` does otherwise than its namesake on purpose; docs/inference-server.md has the reasons.

Run against both: each test says what either does, so that a difference that goes away is noticed too.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

import inference_server
from inference_server import testing

OURS = hasattr(inference_server, "plugins")


def client() -> Any:
    return testing.client()


def status(method: str, path: str, **more: Any) -> int:
    found: int = client().open(path, method=method, **more).status_code
    return found


def test_a_wrong_method_is_405_with_allow() -> None:
    assert status("POST", "/ping") == (405 if OURS else 404)
    assert status("GET", "/invocations") == (405 if OURS else 404)
    assert client().get("/invocations").headers.get("Allow") == ("POST" if OURS else None)


def test_ping_takes_head() -> None:
    assert status("HEAD", "/ping") == (200 if OURS else 404)


def fails() -> Any:
    """What a client sees of hooks that raise: a status and JSON, or the exception, of which a server makes a 500."""
    try:
        response = client().post("/invocations", data=b"x", headers={"Accept": "text/csv"})
    except Exception as error:
        return type(error)
    return response.status_code, json.loads(response.data)["type"]


@pytest.mark.parametrize(
    ("hook", "error", "ours"),
    [
        ("predict_fn", RuntimeError("no"), (500, "PredictionFailed")),
        ("input_fn", ValueError("no"), (400, "BadInput")),
        ("input_fn", KeyError("location"), (400, "BadInput")),
        ("output_fn", AssertionError(), (406, "NotAcceptable")),
    ],
)
def test_what_a_hook_raises_has_a_status_and_a_type(plugin: Any, hook: str, error: Any, ours: Any) -> None:
    def input_fn(input_data: bytes, content_type: str) -> Any:
        raise error

    def predict_fn(data: Any, model: Any) -> Any:
        raise error

    def output_fn(prediction: Any, accept: Any) -> Any:
        raise error

    plugin(**{hook: {"input_fn": input_fn, "predict_fn": predict_fn, "output_fn": output_fn}[hook]})
    assert fails() == (ours if OURS else type(error))


def test_a_body_that_is_no_pair_of_bytes_and_type_is_told(plugin: Any) -> None:
    plugin(output_fn=lambda prediction, accept: {"no": "bytes"})
    found = fails()
    assert found == (500, "BadOutput") if OURS else isinstance(found, type)


def test_a_missing_content_type_is_an_empty_text(plugin: Any) -> None:
    seen: list[Any] = []

    def input_fn(input_data: bytes, content_type: Any) -> bytes:
        seen.append(content_type)
        return input_data

    plugin(input_fn=input_fn)
    client().post("/invocations", data=b"x")
    assert seen == ([""] if OURS else [None])


def test_an_absent_accept_accepts_everything(plugin: Any) -> None:
    seen: list[Any] = []

    def output_fn(prediction: Any, accept: Any) -> Any:
        seen.append(accept.accept_json)
        return b"", "application/json"

    plugin(output_fn=output_fn)
    client().post("/invocations", data=b"x")
    assert seen == [OURS]


def test_every_answer_has_a_request_id() -> None:
    given = client().get("/ping", headers={"X-Request-Id": "mine"}).headers.get("X-Request-Id")
    assert given == ("mine" if OURS else None)


def test_two_threads_that_come_first_load_the_model_once(plugin: Any) -> None:
    loaded: list[str] = []
    both = threading.Barrier(2)

    def model_fn(model_dir: str) -> Any:
        loaded.append(model_dir)
        time.sleep(0.1)  # long enough for the other thread to come
        return lambda data: data

    plugin(model_fn=model_fn)

    def ask() -> None:
        both.wait()
        client().post("/invocations", data=b"x")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == (1 if OURS else 2)


def test_ping_answers_while_a_prediction_runs_without_calling_a_hook_beside_it(plugin: Any) -> None:
    running, go_on = threading.Event(), threading.Event()
    pinged: list[bool] = []

    def predict_fn(data: Any, model: Any) -> Any:
        running.set()
        go_on.wait(10)
        return data

    def ping_fn(model: Any) -> bool:
        pinged.append(True)
        return True

    plugin(predict_fn=predict_fn, ping_fn=ping_fn)
    thread = threading.Thread(target=lambda: client().post("/invocations", data=b"x"))
    thread.start()
    running.wait(10)
    assert status("GET", "/ping") == 200
    assert pinged == ([] if OURS else [True])
    go_on.set()
    thread.join()


def test_an_answer_may_come_in_pieces(plugin: Any) -> None:
    def predict_fn(data: Any, model: Any) -> Any:
        yield b"one "
        yield b"two"

    plugin(predict_fn=predict_fn)
    if OURS:
        response = client().post("/invocations", data=b"x")
        assert (response.data, response.headers.get("Content-Length")) == (b"one two", None)
