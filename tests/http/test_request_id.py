"""The request id in header and error, the client's where it is sane."""

from __future__ import annotations

import httpx
import pytest

from forecastle.http.request_id import request_id
from http_fakes import MemoryCore

PATHS = ["/resnet-18/predict", "/invocations", "/ping", "/nothing", "/vgg/predict"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("id_", ["a", "0f3c:9.b_-Z", "x" * 128])
def test_a_sane_id_of_the_client_is_kept(client: httpx.Client, path: str, id_: str) -> None:
    assert client.post(path, json=[1], headers={"X-Request-Id": id_}).headers["x-request-id"] == id_


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("id_", [b"", b"a b", b"x" * 129, "é".encode(), b"a/b", b'"a"'])
def test_any_other_id_is_replaced(client: httpx.Client, path: str, id_: bytes) -> None:
    ours = client.post(path, json=[1], headers={b"X-Request-Id": id_}).headers["x-request-id"]
    assert ours.encode("latin-1") != id_
    assert request_id(ours.encode()) == ours


def test_the_core_gets_the_id_that_the_client_sees(client: httpx.Client, core: MemoryCore) -> None:
    reply = client.post("/resnet-18/predict", json=[1])
    assert core.taken().request.id == reply.headers["x-request-id"]


def test_our_ids_are_distinct() -> None:
    assert len({request_id(None) for _ in range(1000)}) == 1000
