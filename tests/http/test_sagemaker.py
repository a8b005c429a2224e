"""The SageMaker container contract over HTTP."""

from __future__ import annotations

import httpx
import pytest

from forecastle.messages import Part, Response
from http_fakes import MemoryCore, MemoryModel

TARGET = "X-Amzn-SageMaker-Target-Model"


def test_an_invocation_passes_body_and_answer_unchanged(client: httpx.Client, core: MemoryCore) -> None:
    core.answer = lambda _: Response(b"3,4\n", "text/csv; charset=utf-8")
    reply = client.post("/invocations", content=b"1,2\n", headers={"Content-Type": "text/csv; charset=utf-8"})
    assert (reply.content, reply.headers["content-type"]) == (b"3,4\n", "text/csv; charset=utf-8")
    assert core.taken().request.parts == [Part("", "text/csv; charset=utf-8", b"1,2\n")]


def test_a_json_answer_is_not_wrapped(client: httpx.Client) -> None:
    assert client.post("/invocations", json={"location": "Fair Isle"}).json() == {"location": "Fair Isle"}


def test_an_urlencoded_body_belongs_to_input_fn(client: httpx.Client, core: MemoryCore) -> None:
    client.post("/invocations", data={"a": "1"})
    assert core.taken().request.parts == [Part("", "application/x-www-form-urlencoded", b"a=1")]


def test_a_multipart_body_is_split(client: httpx.Client, core: MemoryCore) -> None:
    client.post("/invocations", files={"input0": ("a.jpg", b"J", "image/jpeg")})
    assert core.taken().request.parts == [Part("input0", "image/jpeg", b"J")]


@pytest.mark.parametrize(
    ("query", "headers"), [("?model_name=vgg", {}), ("", {TARGET: "vgg"}), ("?model_name=vgg", {TARGET: "resnet-18"})]
)
def test_one_of_several_models_is_named_by_query_or_header(
    client: httpx.Client, core: MemoryCore, query: str, headers: dict[str, str]
) -> None:
    core.models["vgg"] = MemoryModel("vgg")
    assert client.post("/invocations" + query, json=[1], headers=headers).status_code == 200
    assert core.taken().request.model == "vgg"


def test_several_models_and_no_name_is_refused_with_their_names(client: httpx.Client, core: MemoryCore) -> None:
    core.models["vgg"] = MemoryModel("vgg")
    reply = client.post("/invocations", json=[1])
    assert reply.status_code == 400
    assert "resnet-18 and vgg" in reply.json()["message"]
    assert "model_name" in reply.json()["message"]


def test_the_names_in_a_refusal_are_bounded(client: httpx.Client, core: MemoryCore) -> None:
    core.models |= {f"model-{i:03}": MemoryModel(f"model-{i:03}") for i in range(500)}
    message = client.post("/invocations", json=[1]).json()["message"]
    assert "481 more" in message
    assert len(message) < 1000


def test_an_unknown_model_is_not_found(client: httpx.Client) -> None:
    reply = client.post("/invocations?model_name=vgg", json=[1])
    assert (reply.status_code, reply.json()["type"]) == (404, "ModelNotFound")


def test_execution_parameters_are_two_integers_and_a_strategy(client: httpx.Client) -> None:
    reply = client.get("/execution-parameters")
    assert reply.json() == {"BatchStrategy": "SingleRecord", "MaxConcurrentTransforms": 3, "MaxPayloadInMB": 7}


def test_execution_parameters_of_several_models_need_a_name(client: httpx.Client, core: MemoryCore) -> None:
    core.models["vgg"] = MemoryModel("vgg")
    assert client.get("/execution-parameters").status_code == 400
    assert client.get("/execution-parameters?model_name=vgg").status_code == 200
