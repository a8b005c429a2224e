"""MMS 1.x's inference routes."""

from __future__ import annotations

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from http_fakes import MemoryCore, MemoryModel

PREDICTIONS = "/predictions/resnet-18"


def test_an_answer_goes_out_as_the_model_made_it(client: httpx.Client) -> None:
    reply = client.post(PREDICTIONS, json=[1])
    assert (reply.status_code, reply.json()) == (200, [1])
    assert reply.headers["content-type"] == "application/json"


def test_a_form_has_parts_and_anything_else_is_the_body(client: httpx.Client, core: MemoryCore) -> None:
    client.post(PREDICTIONS, files={"data": ("kitten.jpg", b"\xff\xd8", "image/jpeg")}, data={"top": "5"})
    client.post(PREDICTIONS, content="a=1&b=2", headers={"content-type": "application/x-www-form-urlencoded"})
    client.put(PREDICTIONS, content=b"\x00")
    asked = [core.tickets.get().request for _ in range(3)]
    assert [(part.name, part.content_type, part.data) for request in asked for part in request.parts] == [
        ("top", "", b"5"),
        ("data", "image/jpeg", b"\xff\xd8"),
        ("a", "", b"1"),
        ("b", "", b"2"),
        ("", "", b"\x00"),
    ]


def test_a_version_may_be_named(client: httpx.Client, core: MemoryCore) -> None:
    assert client.post(f"{PREDICTIONS}/1", json=[1]).json() == [1]
    client.post(PREDICTIONS, json=[1])
    assert [core.tickets.get().request.version for _ in range(2)] == ["1", ""]


@pytest.mark.parametrize("method", ["POST", "PUT", "GET", "OPTIONS"])
@pytest.mark.parametrize("path", ["/predictions/vgg", "/predictions/resnet-18/2", "/predictions/resnet-18/1/2"])
def test_what_is_not_served_is_not_found_whatever_the_method(client: httpx.Client, method: str, path: str) -> None:
    reply = client.request(method, path)
    assert (reply.status_code, reply.json()["type"]) == (404, "ModelNotFound")
    assert {"code", "type", "message"} <= reply.json().keys()


def test_another_method_is_refused_with_those_there_are(client: httpx.Client) -> None:
    reply = client.get(PREDICTIONS)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST, PUT")
    assert client.get("/").status_code == 405


@pytest.mark.parametrize("path", ["/", PREDICTIONS, f"{PREDICTIONS}/1"])
def test_options_describes_the_server_or_a_model(client: httpx.Client, path: str) -> None:
    document = client.options(path).json()
    OpenAPIV31SpecValidator(document).validate()
    if path == "/":
        assert document == client.get("/openapi.json").json()
    else:
        assert document["info"]["title"] == "RESTful API for: resnet-18"
        assert list(document["paths"]) == [path]


def test_a_model_may_be_called_predict_and_another_one_predictions(client: httpx.Client, core: MemoryCore) -> None:
    core.models["predict"] = MemoryModel("predict")
    assert client.post("/predictions/predict", json=[1]).json() == [1]
    core.models["predictions"] = MemoryModel("predictions")
    assert client.post("/predictions/predict", json=[1]).json() == {"prediction": [1]}


def test_a_model_is_invoked_by_name_without_multi_model_too(client: httpx.Client) -> None:
    reply = client.post("/models/resnet-18/invoke", json=[1])
    assert (reply.status_code, reply.json()) == (200, [1])
    assert client.post("/models/vgg/invoke", json=[1]).json()["type"] == "ModelNotFound"
