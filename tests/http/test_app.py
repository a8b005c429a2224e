"""Routes: what is found, what is not, and with which method."""

from __future__ import annotations

import httpx
import pytest

from http_fakes import MemoryCore, MemoryModel

PREDICT = "/resnet-18/predict"


def _error(reply: httpx.Response) -> tuple[int, str]:
    body = reply.json()
    assert list(body) == ["code", "type", "message", "request_id"]
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-request-id"] == body["request_id"]
    assert body["code"] == reply.status_code
    return reply.status_code, body["type"]


def test_a_model_answers_at_its_name(client: httpx.Client) -> None:
    reply = client.post(PREDICT, json=[1])
    assert (reply.status_code, reply.json()) == (200, {"prediction": [1]})


def test_a_percent_encoded_name_is_the_same_name(client: httpx.Client) -> None:
    assert client.post("/resnet%2D18/predict", json=[1]).status_code == 200


def test_a_model_that_comes_later_has_a_route_and_one_that_goes_has_none(
    client: httpx.Client, core: MemoryCore
) -> None:
    core.models["later"] = MemoryModel("later")
    assert client.post("/later/predict", json=[1]).status_code == 200
    del core.models["later"]
    assert _error(client.post("/later/predict", json=[1])) == (404, "ModelNotFound")


def test_an_unknown_model_is_refused_with_those_that_are_served(client: httpx.Client) -> None:
    reply = client.post("/vgg/predict", json=[1])
    assert _error(reply) == (404, "ModelNotFound")
    assert "vgg" in reply.json()["message"]
    assert "resnet-18" in reply.json()["message"]


@pytest.mark.parametrize(
    "path", ["/predict", "/predictions", "/a/b/predict", "/resnet-18/predict/", "/resnet-18", "/ünïcode", "/ping/"]
)
def test_an_unknown_path_is_refused_with_those_that_exist(client: httpx.Client, path: str) -> None:
    reply = client.post(path, json=[1])
    assert _error(reply) == (404, "NotFound")
    assert "/invocations" in reply.json()["message"]


def test_a_long_unknown_path_is_not_repeated_whole(client: httpx.Client) -> None:
    assert len(client.get("/" + "x" * 5000).content) < 1000


@pytest.mark.parametrize("path", [PREDICT, "/invocations"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_a_prediction_takes_post_alone(client: httpx.Client, path: str, method: str) -> None:
    reply = client.request(method, path)
    assert _error(reply) == (405, "MethodNotAllowed")
    assert reply.headers["allow"] == "POST"


def test_an_unknown_model_is_not_found_whatever_the_method(client: httpx.Client) -> None:
    assert _error(client.get("/vgg/predict")) == (404, "ModelNotFound")


@pytest.mark.parametrize("path", ["/ping", "/live", "/ready", "/execution-parameters"])
def test_a_page_takes_get_and_head_alone(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 200
    head = client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert "x-request-id" in head.headers
    reply = client.post(path)
    assert _error(reply) == (405, "MethodNotAllowed")
    assert reply.headers["allow"] == "GET, HEAD"


def test_a_head_on_a_prediction_is_refused_without_a_body(client: httpx.Client) -> None:
    reply = client.head(PREDICT)
    assert (reply.status_code, reply.content) == (405, b"")
    assert client.get("/live").status_code == 200
