"""Health on the inference port."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx

from http_fakes import MemoryCore, MemoryModel


def test_a_healthy_server_says_so_as_mms_did(client: httpx.Client) -> None:
    reply = client.get("/ping")
    assert (reply.status_code, reply.json()) == (200, {"health": "healthy!"})


def test_an_unhealthy_server_is_503_with_its_reasons_and_still_live(client: httpx.Client, core: MemoryCore) -> None:
    core.reasons = ["no replica of 'resnet-18' is ready"]
    reply = client.get("/ping")
    assert reply.status_code == 503
    assert reply.json() == {"health": "unhealthy!", "reasons": ["no replica of 'resnet-18' is ready"]}
    assert client.get("/live").status_code == 200


def test_ready_counts_the_replicas_by_state(client: httpx.Client, core: MemoryCore) -> None:
    core.models["vgg"] = MemoryModel("vgg", "ready", "loading", "loading")
    core.reasons = ["the server is stopping"]
    reply = client.get("/ready")
    assert reply.status_code == 503
    assert reply.json() == {
        "ready": False,
        "reasons": ["the server is stopping"],
        "models": {
            "resnet-18": {"required": True, "replicas": {"ready": 1}},
            "vgg": {"required": True, "replicas": {"ready": 1, "loading": 2}},
        },
    }


def test_ping_is_answered_while_a_prediction_waits(client: httpx.Client, core: MemoryCore) -> None:
    core.answer = lambda _: None
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(httpx.post, f"{client.base_url}/resnet-18/predict", json=[1])
        ticket = core.taken()
        assert client.get("/ping").status_code == 200
        ticket.cancel()
        assert answer.result(20).status_code == 499
