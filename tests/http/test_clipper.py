"""Clipper's query contract, over a core whose answers the test decides."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import DeadlineExceeded, NoReplica, Overloaded, PredictionFailed, RequestError
from forecastle.http.app import InferenceApp
from forecastle.http.clipper_input import JsonError, parse_query
from forecastle.http.stats import HttpStats
from forecastle.messages import Response
from forecastle.serving.application import ServedApplication
from forecastle.serving.clock import LoopClock
from forecastle.serving.selection import make
from http_fakes import MemoryCore, Running, running

TYPES = ("integers", "floats", "doubles", "bytes", "strings", "json")


class Applications(dict[str, ServedApplication]):
    """One application for each type of input, linked to the one model; made on the server's loop."""

    def fill(self, core: MemoryCore) -> None:
        clock = LoopClock(asyncio.get_running_loop())
        for type_ in (*TYPES, "resnet-18"):
            self[type_] = ServedApplication(
                type_,
                input_type=type_ if type_ in TYPES else "json",
                default=b'"none"',
                slo=5.0,
                models=("resnet-18",),
                policy=make("current", {}, Random(1)),
                cache=None,
                router=core,
                clock=clock,
            )


@pytest.fixture
def server(core: MemoryCore, stats: HttpStats) -> Iterator[Running]:
    applications = Applications()
    app = InferenceApp(core, stats, timeout=30.0, max_body=100_000, applications=applications)
    with running(app) as server:
        server.call(lambda: applications.fill(core))
        yield server


def predict(client: httpx.Client, body: object, type_: str = "json", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(f"/{type_}/predict", content=content, headers=headers)


def output(client: httpx.Client, body: object, type_: str = "json") -> Any:
    reply = predict(client, body, type_)
    assert reply.status_code == 200, reply.text
    assert reply.json()["default"] is False
    return reply.json()["output"]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("integers", [1, -2, 2**31 - 1]),
        ("integers", []),
        ("floats", [1, 2.5]),
        ("doubles", [1, 2.5, 1e300]),
        ("strings", "héllo"),
        ("strings", ""),
        ("json", {"any": [None, True]}),
        ("json", None),
    ],
)
def test_a_value_reaches_the_model_as_the_json_that_it_is(client: httpx.Client, type_: str, value: object) -> None:
    assert output(client, {"input": value}, type_) == value


def test_bytes_reach_the_model_as_bytes(client: httpx.Client, core: MemoryCore) -> None:
    core.answer = lambda request: Response(request.parts[0].data, "text/plain")
    assert output(client, {"input": base64.b64encode(b"hello").decode()}, "bytes") == "hello"
    assert core.taken().request.parts[0].content_type == "application/octet-stream"


def test_a_batch_is_answered_in_its_order_and_one_of_one_is_unwrapped(client: httpx.Client) -> None:
    reply = predict(client, {"input_batch": [[1], [2], [3]]}).json()
    assert [each["output"] for each in reply["batch_predictions"]] == [[1], [2], [3]]
    assert len({each["query_id"] for each in reply["batch_predictions"]}) == 3
    assert output(client, {"input_batch": [[1]]}) == [1]
    assert predict(client, {"input_batch": []}).json() == {"batch_predictions": []}


def test_input_counts_where_both_are_there_and_unknown_keys_are_ignored(client: httpx.Client) -> None:
    assert output(client, {"input": 1, "input_batch": [2, 3], "uid": 7}) == 1


def test_a_slash_at_the_end_is_the_same_path(client: httpx.Client) -> None:
    assert client.post("/json/predict/", json={"input": 1}).json()["output"] == 1


@pytest.mark.parametrize("text", ["1.0", "[1, 2]", "NaN", "007", "(749, 600)", "text"])
def test_an_answer_that_is_text_is_the_json_that_it_can_be(client: httpx.Client, core: MemoryCore, text: str) -> None:
    core.answer = lambda _: Response(text.encode(), "text/plain")
    try:
        expected = json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        expected = text
    assert output(client, {"input": 1}) == expected


@pytest.mark.parametrize(
    ("error", "cause", "explanation"),
    [
        (
            DeadlineExceeded("slow"),
            "deadline",
            "Failed to retrieve a prediction response within the specified latency SLO",
        ),
        (NoReplica("gone"), "no_replica", "No connected models found for query"),
        (Overloaded("full"), "overload", "full"),
        (PredictionFailed("predict_fn raised KeyError: 'x'"), "error", "predict_fn raised KeyError: 'x'"),
    ],
)
def test_a_default_says_so_in_field_and_header_with_its_cause(
    client: httpx.Client, core: MemoryCore, error: RequestError, cause: str, explanation: str
) -> None:
    core.answer = lambda _: error
    reply = predict(client, {"input": 1})
    assert reply.status_code == 200
    assert reply.headers["forecastle-default"] == cause
    body = reply.json()
    assert (body["output"], body["default"], body["default_explanation"]) == ("none", True, explanation)
    assert body["default_cause"] == cause


def test_who_prefers_no_default_gets_the_error(client: httpx.Client, core: MemoryCore) -> None:
    core.answer = lambda _: Overloaded("full", retry_after=3)
    reply = predict(client, {"input_batch": [1, 2]}, Prefer="respond-async, default=no")
    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "3"
    assert reply.json() == {"error": "Overloaded", "cause": "full"}
    core.answer = lambda _: DeadlineExceeded("slow")
    assert predict(client, {"input": 1}, Prefer="default=no").status_code == 504


BAD: list[tuple[str, bytes, str]] = [
    ("json", b"", "parse error"),
    ("json", b"{", "parse error"),
    ("json", b"[1]", "Expected `object`"),
    ("json", b"3", "Expected `object`"),
    ("json", b"null", "Expected `object`"),
    ("json", b"{}", "does not have required keys input or input_batch"),
    ("json", b'{"input": NaN}', "parse error"),
    ("json", b'{"input": "\xff"}', "not UTF-8"),
    ("json", b'{"input": ' + b"[" * 40_000 + b"]" * 40_000 + b"}", "nested too deeply"),
    ("json", b'{"input": 1, "version": 1}', "version expected type String"),
    ("json", b'{"input": 1, "version": ""}', "empty string"),
    ("json", b'{"input_batch": {"a": 1}}', "input_batch expected type Array"),
    ("json", b'{"input_batch": null}', "input_batch expected type Array"),
    ("integers", b'{"input": 1}', "an array of integers"),
    ("integers", b'{"input": [1.5]}', "Expected `int`"),
    ("integers", b'{"input": [true]}', "Expected `int`"),
    ("integers", b'{"input": [2147483648]}', "2147483647"),
    ("integers", b'{"input": [[1]]}', "Expected `int`"),
    ("integers", b'{"input_batch": [[1], ["2"]]}', "input_batch[1]"),
    ("floats", b'{"input": [1e39]}', "Expected `float`"),
    ("floats", b'{"input": ["1"]}', "Expected `float`"),
    ("doubles", b'{"input": [1e999]}', "out of range"),
    ("doubles", b'{"input": [[1], [1, 2]]}', "Expected `float`"),
    ("doubles", b'{"input": null}', "Expected `array`"),
    ("strings", b'{"input": 5}', "Expected `str`"),
    ("strings", b'{"input": ["a"]}', "Expected `str`"),
    ("bytes", b'{"input": [1]}', "Expected `str`"),
    ("bytes", b'{"input": "not base64!"}', "no valid base64"),
    ("bytes", b'{"input": "abc"}', "no valid base64"),
    ("bytes", '{"input": "é"}'.encode(), "no valid base64"),
]


@pytest.mark.parametrize(("type_", "body", "text"), BAD)
def test_bad_input_is_400_with_error_and_cause_and_reaches_no_model(
    client: httpx.Client, core: MemoryCore, type_: str, body: bytes, text: str
) -> None:
    reply = predict(client, body, type_)
    assert reply.status_code == 400
    assert reply.json()["error"] == "Json error"
    assert text in reply.json()["cause"]
    assert len(reply.content) < 2000
    assert core.tickets.empty()
    good = {"bytes": "MQ==", "strings": "a", "json": 1}.get(type_, [1])
    assert predict(client, {"input": good}, type_).json()["default"] is False


def test_an_unknown_version_is_refused_in_clippers_words(client: httpx.Client, core: MemoryCore) -> None:
    reply = predict(client, {"input": 1, "version": "bogus"})
    assert reply.status_code == 400
    assert reply.json() == {
        "error": "Query processing error",
        "cause": "Requested version: bogus does not exist for model: resnet-18",
    }
    assert output(client, {"input": 1, "version": "1"}) == 1
    assert core.taken().request.version == "1"


def test_another_method_or_path_is_answered(client: httpx.Client) -> None:
    assert client.get("/json/predict").status_code == 405
    assert client.post("/json/nothing", json={}).status_code == 404
    assert client.post("/no-such-app/predict", json={"input": 1}).status_code == 404


def test_a_body_over_the_limit_is_413_in_the_contracts_shape(client: httpx.Client) -> None:
    reply = predict(client, {"input": "x" * 200_000})
    assert reply.status_code == 413
    assert set(reply.json()) == {"error", "cause"}


def test_a_form_goes_to_the_model_of_that_name_as_mms_has_it(client: httpx.Client) -> None:
    reply = client.post("/resnet-18/predict", files={"input0": ("x", b"[7]", "application/json")})
    assert reply.json() == {"prediction": [7]}
    assert client.post("/resnet-18/predict", json={"input": [7]}).json()["output"] == [7]


def test_feedback_is_told_and_wants_input_and_label(client: httpx.Client) -> None:
    reply = client.post("/json/update", json={"uid": 0, "input": [1], "label": 1.0})
    assert (reply.status_code, reply.text) == (200, "Feedback received? 1")
    bad: list[object] = [{"uid": 0, "input": [1]}, {"label": 1}, []]
    for body in bad:
        assert client.post("/json/update", json=body).status_code == 400
    assert client.post("/integers/update", json={"input": "x", "label": 1}).status_code == 400


def test_metrics_have_clippers_shape(client: httpx.Client) -> None:
    predict(client, {"input": 1})
    found = client.get("/metrics").json()
    assert {"app:json:num_predictions": {"count": "1"}} in found["counters"]
    assert {"app:json:default_prediction_ratio": {"ratio": "0"}} in found["ratio_counters"]
    (latency,) = [each for each in found["histograms"] if "app:json:prediction_latency" in each]
    summary = latency["app:json:prediction_latency"]
    assert set(summary) == {"unit", "size", "min", "max", "mean", "std_dev", "p50", "p95", "p99"}
    assert summary["size"] == "1"
    (meter,) = [each for each in found["meters"] if "app:json:prediction_throughput" in each]
    assert set(meter["app:json:prediction_throughput"]) == {"unit", "rate", "rate_1min", "rate_5min", "rate_15min"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.sampled_from(TYPES))
def test_whatever_json_comes_it_is_a_query_or_a_json_error(value: object, type_: str) -> None:
    try:
        query = parse_query(json.dumps({"input": value}).encode(), type_)
    except JsonError:
        return
    (part,) = query.inputs
    if type_ == "bytes":
        assert base64.b64encode(part.data).decode() == value
    else:
        assert json.loads(part.data) == value


@given(st.binary(max_size=60), st.sampled_from(TYPES))
def test_whatever_bytes_come_it_is_a_query_or_a_json_error(body: bytes, type_: str) -> None:
    with contextlib.suppress(JsonError):
        assert parse_query(body, type_).inputs is not None
