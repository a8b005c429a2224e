from __future__ import annotations

import asyncio
from typing import Any

import httpx
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV2SpecValidator, OpenAPIV31SpecValidator

from forecastle.http.app import InferenceApp
from forecastle.http.stats import HttpStats
from forecastle.models.signature import Signature, Tensor
from http_fakes import MemoryCore

IMAGE = Signature((Tensor("data", (None, 3, 224, 224)),), (Tensor("prob", (None, 1000)),), "image/jpeg")
TABLE = Signature(
    (Tensor("X", (None, 4), "float64"), Tensor("name", (None,), "str"), Tensor("big", (None, 100), "int64")),
    (Tensor("y", (None,), "int64"),),
)
ANY = Signature((Tensor("x", ()),), ())


def app(**signatures: Signature | None) -> Any:
    core = MemoryCore(*signatures)
    for name, signature in signatures.items():
        core.models[name].info = msgspec.structs.replace(core.models[name].info, signature=signature)
    return InferenceApp(core, HttpStats(), timeout=5, max_body=1000, title="Cats", version="7")


def get(path: str, **signatures: Signature | None) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app(**signatures))
        async with httpx.AsyncClient(transport=transport, base_url="http://here:8080") as client:
            return await client.get(path)

    return asyncio.run(ask())


SERVED: list[dict[str, Signature | None]] = [
    {},
    {"resnet-18": IMAGE},
    {"iris": TABLE},
    {"hooks": None},
    {"any": ANY},
    {"resnet-18": IMAGE, "iris": TABLE, "hooks": None},
]


@pytest.mark.parametrize("signatures", SERVED, ids=lambda served: "+".join(served) or "nothing")
def test_both_descriptions_are_valid_whatever_is_served(signatures: dict[str, Signature | None]) -> None:
    OpenAPIV2SpecValidator(get("/api-description", **signatures).json()["description"]).validate()
    OpenAPIV31SpecValidator(get("/openapi.json", **signatures).json()).validate()


def test_the_swagger_is_shaped_as_mms_has_it() -> None:
    spec = get("/api-description", **{"resnet-18": IMAGE}).json()["description"]
    assert (spec["swagger"], spec["host"], spec["schemes"]) == ("2.0", "here:8080", ["http"])
    assert spec["info"] == {"version": "7", "title": "Cats"}
    assert list(spec["paths"]) == ["/resnet-18/predict", "/ping", "/api-description"]
    predict = spec["paths"]["/resnet-18/predict"]["post"]
    assert predict["operationId"] == "resnet-18_predict"
    assert predict["consumes"] == ["multipart/form-data"]
    assert predict["produces"] == ["application/json"]
    assert predict["parameters"] == [
        {
            "in": "formData",
            "name": "input0",
            "description": "data should be image which will be resized to: [3, 224, 224]",
            "required": True,
            "type": "file",
        }
    ]
    assert spec["paths"]["/ping"]["get"]["operationId"] == "ping"


def test_openapi_tells_inputs_by_their_names_types_and_examples() -> None:
    spec = get("/openapi.json", iris=TABLE).json()
    content = spec["paths"]["/iris/predict"]["post"]["requestBody"]["content"]
    properties = content["multipart/form-data"]["schema"]["properties"]
    assert properties["X"]["examples"] == [[0.0, 0.0, 0.0, 0.0]]
    batch, record = properties["X"]["anyOf"]
    assert record == {"type": "array", "items": {"type": ["number", "boolean"]}, "minItems": 4, "maxItems": 4}
    assert batch == {"type": "array", "items": record, "minItems": 1}
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    assert properties["name"] == {"anyOf": [texts, {"type": "string"}], "examples": [""]}
    assert "examples" not in properties["big"]
    assert content["application/json"]["schema"]["required"] == ["X", "name", "big"]


def test_openapi_says_how_to_name_a_model_where_there_are_several() -> None:
    one = get("/openapi.json", iris=TABLE).json()["paths"]["/invocations"]["post"]["parameters"][0]
    several = get("/openapi.json", iris=TABLE, hooks=None).json()["paths"]["/invocations"]["post"]["parameters"][0]
    assert (one["required"], several["required"]) == (False, True)
    assert several["schema"]["enum"] == ["iris", "hooks"]


def test_the_page_takes_nothing_from_elsewhere() -> None:
    reply = get("/docs")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "http://" not in reply.text
    assert "https://" not in reply.text
    assert "innerHTML" not in reply.text
