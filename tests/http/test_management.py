"""The management application."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from forecastle.http.management import management_app
from forecastle.http.stats import HttpStats
from http_fakes import MemoryCore, MemoryModel, running


@pytest.fixture
def management(core: MemoryCore, stats: HttpStats) -> Iterator[httpx.Client]:
    with running(management_app(core, stats)) as server, httpx.Client(base_url=server.url) as client:
        yield client


def test_models_are_listed_with_their_replicas(management: httpx.Client, core: MemoryCore) -> None:
    core.models["vgg"] = MemoryModel("vgg", "ready", "failed")
    listed = management.get("/models").json()["models"]
    assert [(model["name"], [r["state"] for r in model["replicas"]]) for model in listed] == [
        ("resnet-18", ["ready"]),
        ("vgg", ["ready", "failed"]),
    ]


def test_the_list_comes_in_pages_as_mms_has_them(management: httpx.Client, core: MemoryCore) -> None:
    core.models.update({f"m{index:03}": MemoryModel(f"m{index:03}") for index in range(104)})
    first = management.get("/models?limit=100").json()
    assert [model["modelName"] for model in first["models"]] == [f"m{index:03}" for index in range(100)]
    rest = management.get(f"/models?next_page_token={first['nextPageToken']}").json()
    assert [model["modelName"] for model in rest["models"]] == ["m100", "m101", "m102", "m103", "resnet-18"]
    assert "nextPageToken" not in rest
    assert management.get("/models?limit=2&next_page_token=103").json().keys() == {"models"}
    for tolerated in ("limit=200&nextPageToken=X", "limit=0", "limit=-1", "limit=x&next_page_token=x"):
        assert len(management.get(f"/models?{tolerated}").json()["models"]) == 100
    assert management.get("/models?next_page_token=1000").json() == {"models": []}


@pytest.mark.parametrize("path", ["/ping", "/live", "/ready", "/models", "/metrics"])
def test_its_pages_take_get_and_head(management: httpx.Client, path: str) -> None:
    assert management.get(path).status_code == 200
    assert management.head(path).status_code == 200
    assert management.delete(path).json()["type"] == "MethodNotAllowed"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_web_page_changes_nothing(management: httpx.Client, method: str) -> None:
    for origin in ("http://elsewhere.example", "null", str(management.base_url)):
        reply = management.request(method, "/models?url=x", headers={"origin": origin})
        assert (reply.status_code, reply.json()["type"]) == (403, "ForeignPage")
    assert management.get("/models", headers={"origin": "http://elsewhere.example"}).status_code == 200


def test_it_predicts_nothing(management: httpx.Client, core: MemoryCore) -> None:
    for path in ("/resnet-18/predict", "/invocations"):
        assert management.post(path, json=[1]).json()["type"] == "NotFound"
    assert core.tickets.empty()


def test_a_defect_in_a_page_is_told_without_its_insides(
    management: httpx.Client, core: MemoryCore, caplog: pytest.LogCaptureFixture
) -> None:
    core.models["broken"] = None  # type: ignore[assignment]
    reply = management.get("/models", headers={"X-Request-Id": "r9"})
    assert (reply.status_code, reply.json()["type"], reply.json()["request_id"]) == (500, "InternalError", "r9")
    assert "NoneType" not in reply.text
    assert "r9" in caplog.text
    assert "NoneType" in caplog.text
