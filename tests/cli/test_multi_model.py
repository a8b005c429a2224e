"""SageMaker's multi-model endpoints, on a real server: the sequence that the platform plays, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from cli.process import Server, all_gone, serving

MODEL = "def predict_fn(data, model):\n    return {'sum': sum(data)}\n"


def put(root: Path, name: str, script: str = MODEL) -> str:
    code = root / name / "model" / "code"
    code.mkdir(parents=True)
    (code / "inference.py").write_text(script)
    return str(code.parent)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def server(tmp_path: Path, root: Path) -> Iterator[Server]:
    root.mkdir()
    with serving("--model-root", str(root), folder=tmp_path, environment={"SAGEMAKER_MULTI_MODEL": "true"}) as server:
        yield server


def load(server: Server, name: str, url: str) -> httpx.Response:
    return httpx.post(f"{server.url}/models", json={"model_name": name, "url": url}, timeout=60)


def test_the_platforms_sequence(server: Server, root: Path) -> None:
    models = f"{server.url}/models"
    assert httpx.get(f"{server.url}/ping").status_code == 200
    assert httpx.get(models).json() == {"models": []}
    url = put(root, "abc")
    assert load(server, "abc", url).status_code == 200
    assert load(server, "abc", url).status_code == 409
    assert httpx.get(models).json() == {"models": [{"modelName": "abc", "modelUrl": url}]}
    assert httpx.get(f"{models}/abc").json() == {"modelName": "abc", "modelUrl": url}
    reply = httpx.post(f"{models}/abc/invoke", json=[1, 2, 3])
    assert (reply.status_code, reply.json()) == (200, {"sum": 6})
    replicas = server.replicas()
    assert httpx.delete(f"{models}/abc").status_code == 200
    assert all_gone(replicas)
    for method, path in [("DELETE", "abc"), ("GET", "abc"), ("POST", "abc/invoke")]:
        gone = httpx.request(method, f"{models}/{path}")
        assert (gone.status_code, gone.json()["type"]) == (404, "ModelNotFound")
    assert httpx.get(f"{server.url}/ping").status_code == 200


def test_what_cannot_be_loaded_is_refused_by_its_kind_and_leaves_nothing(server: Server, root: Path) -> None:
    outside = put(root.parent / "elsewhere", "x")
    for url in (outside, str(root), f"{root}/../elsewhere/x/model", "/etc", "", str(root / "missing")):
        assert load(server, "x", url).status_code == 400, url
    assert load(server, "a b", put(root, "named")).status_code == 400
    assert httpx.post(f"{server.url}/models", content=b'{"url": 3}').status_code == 400
    assert load(server, "big", put(root, "big", "raise MemoryError")).status_code == 507
    broken = load(server, "broken", put(root, "broken", "raise RuntimeError('no weights')"))
    assert (broken.status_code, broken.json()["type"]) == (500, "NotLoaded")
    assert "no weights" in broken.json()["message"]
    assert "Traceback" not in broken.text
    assert httpx.get(f"{server.url}/models").json() == {"models": []}
    assert server.replicas() == []


def test_loading_unloading_and_invoking_at_once_ends_every_call(server: Server, root: Path) -> None:
    url = put(root, "abc")

    def play(turn: int) -> int:
        kind = turn % 3
        if kind == 0:
            return load(server, "abc", url).status_code
        if kind == 1:
            return httpx.post(f"{server.url}/models/abc/invoke", json=[turn], timeout=60).status_code
        return httpx.delete(f"{server.url}/models/abc", timeout=60).status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = set(pool.map(play, range(24)))
    assert statuses <= {200, 404, 409, 503}
    assert load(server, "abc", url).status_code in {200, 409}
    assert httpx.post(f"{server.url}/models/abc/invoke", json=[4]).json() == {"sum": 4}


def test_without_the_mode_there_is_no_such_route(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text("def predict_fn(data):\n    return data\n")
    with serving("echo.py", folder=tmp_path) as server:
        assert load(server, "abc", "/").status_code == 404
