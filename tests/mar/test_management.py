"""The management API of MMS 1.x on a real server: what MMS's own tests assert of it, and what TorchServe adds.

Where ours differ from them on purpose is told in ``docs/decisions.md``.
"""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from cli.process import PATIENCE, Server, all_gone, eventually, serving
from mar.archivers import NOOP, mms_archive, torch_archive

pytestmark = pytest.mark.timeout(300)

SERVICE_V01 = """
from mms.model_service.model_service import SingleNodeService

class NoopService(SingleNodeService):
    def _inference(self, data):
        return "OK"
"""
SIGNATURE = """{
    "inputs": [{"data_name": "data", "data_shape": [1]}], "input_type": "application/json",
    "outputs": [{"data_name": "result", "data_shape": [1]}], "output_type": "application/json"
}"""
MANIFEST_V01 = """{
    "Model-Archive-Version": 0.1, "Model-Server": 0.1, "License": "Apache 2.0", "Engine": {"MXNet": 0.12},
    "Model": {
        "Model-Name": "noop_v0.1", "Service": "noop_service.py", "Signature": "signature.json", "Description": "no-op",
        "Symbol": "", "Parameters": "", "Model-Format": "MXNet-Symbolic"
    }
}"""
INIT_FAILS = """
class Service:
    def initialize(self, context):
        raise OSError("no weights here")

    def handle(self, data, context):
        return ["OK"] * len(data)
"""
LOAD_OOM = """
class Service:
    def initialize(self, context):
        raise MemoryError("too large")

    def handle(self, data, context):
        return ["OK"] * len(data)
"""
RESPONDING = """
def handle(data, context):
    if data is None:
        return None
    context.set_response_content_type(0, "text/plain")
    context.set_response_header(0, "dummy", "1")
    kind = data[0].get("body")
    if kind == "memory":
        raise MemoryError
    if kind == "status":
        context.set_response_status(507, "Insufficient Storage", idx=0)
        return ["Invalid response"]
    if kind == "text":
        return "a text"
    return [repr(data[0])]
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model store with MMS's own test models."""
    root = tmp_path_factory.mktemp("store")
    legacy = root / "noop-v0.1"
    legacy.mkdir()
    for name, content in {
        "noop_service.py": SERVICE_V01,
        "signature.json": SIGNATURE,
        "MANIFEST.json": MANIFEST_V01,
    }.items():
        (legacy / name).write_text(content)
    for name, content in {
        "noop": NOOP,
        "init-error": INIT_FAILS,
        "loading-memory-error": LOAD_OOM,
        "respheader-test": RESPONDING,
    }.items():
        mms_archive(
            root, {"service.py": content}, name=name, handler="service" if "class" in content else "service:handle"
        )
    for version in ("1.0", "2.0"):
        made = torch_archive(root, {"service.py": NOOP.replace("OK", version)}, name="versioned", version=version)
        made.rename(root / f"versioned-{version}.mar")
    bare = root / "bare"
    bare.mkdir()
    (bare / "service.py").write_text(NOOP)
    return root


@pytest.fixture(scope="module")
def server(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two models of the run, as MMS's tests begin."""
    with serving(
        *("noop_v0.1=noop-v0.1", "noop=noop.mar", "--model-root", str(store), "--store", "memory"),
        folder=store,
        environment={"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))},
    ) as server:
        yield server


class Manager:
    """The management port."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def __call__(self, method: str, path: str, **more: Any) -> tuple[int, str]:
        """Return the status of a reply, and its sentence."""
        reply = httpx.request(method, f"{self._server.management}{path}", timeout=PATIENCE, **more)
        body = reply.json()
        return reply.status_code, body.get("status", body.get("message", ""))

    def get(self, path: str) -> Any:
        """Return what a description holds."""
        return httpx.get(f"{self._server.management}{path}", timeout=PATIENCE).json()


@pytest.fixture
def manage(server: Server) -> Manager:
    return Manager(server)


def test_the_sequence_of_mms_own_tests(server: Server, manage: Manager) -> None:
    described = manage.get("/models/noop_v0.1")
    assert (described["loadedAtStartup"], [worker["status"] for worker in described["workers"]]) == (True, ["READY"])
    pids = [worker["pid"] for worker in described["workers"]]
    assert manage("DELETE", "/models/noop_v0.1") == (200, 'Model "noop_v0.1" unregistered')
    assert all_gone([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)])
    asynchronous = "/models?url=noop-v0.1&model_name=noop_v0.1&runtime=python&synchronous=false"
    assert manage("POST", asynchronous) == (200, 'Model "noop_v0.1" registered')
    assert manage.get("/models/noop_v0.1")["workers"] == []
    assert manage("POST", asynchronous) == (409, "Model noop_v0.1 is already registered.")
    assert manage("PUT", "/models/noop_v0.1?min_worker=2") == (202, "Processing worker updates...")

    def working() -> bool:
        workers = manage.get("/models/noop_v0.1")["workers"]
        return [worker["status"] for worker in workers] == ["READY", "READY"]

    eventually(working, "two workers")
    assert manage("PUT", "/models/noop_v0.1?synchronous=true&min_worker=1") == (200, "Workers scaled")
    assert len(manage.get("/models/noop_v0.1")["workers"]) == 1
    listed = manage.get("/models?limit=200&nextPageToken=X")["models"]
    assert [model["modelName"] for model in listed] == ["noop", "noop_v0.1"]
    assert [Path(model["modelUrl"]).name for model in listed] == ["noop.mar", "noop-v0.1"]
    assert server.post("/predictions/noop_v0.1", b"[1]").json() == "OK"
    assert manage("PUT", "/models/noop_v0.1?min_worker=0&synchronous=true") == (200, "Workers scaled")
    assert server.post("/predictions/noop_v0.1", b"[1]").status_code == 503
    assert manage("DELETE", "/models/noop_v0.1")[0] == 200
    assert manage("GET", "/models/noop_v0.1")[0] == 404


def test_parameters_may_be_json_with_texts_and_single_quotes(manage: Manager) -> None:
    strict = json.dumps({"url": "noop.mar", "model_name": "quoted", "initial_workers": "1", "synchronous": "true"})
    for body in (strict, strict.replace('"', "'")):
        asked = {"content": body, "headers": {"content-type": "application/json"}}
        assert manage("POST", "/models", **asked) == (200, "Workers scaled")
        assert manage("DELETE", "/models/quoted")[0] == 200


def test_a_model_is_described_with_what_it_was_registered_with(manage: Manager) -> None:
    query = "url=noop.mar&model_name=described&batch_size=4&max_batch_delay=50&response_timeout=7&initial_workers=1"
    assert manage("POST", f"/models?{query}") == (200, "Workers scaled")
    described = manage.get("/models/described")
    (worker,) = described.pop("workers")
    assert Path(described.pop("modelUrl")).name == "noop.mar"
    assert described == {
        "modelName": "described",
        "modelVersion": "1",
        "engine": "handler",
        "runtime": "python",
        "minWorkers": 1,
        "maxWorkers": 1,
        "batchSize": 4,
        "maxBatchDelay": 50,
        "loadedAtStartup": False,
        "jobQueueStatus": {"remainingCapacity": 1000, "pendingRequests": 0},
    }
    assert (worker["id"], worker["status"], worker["gpu"]) == ("0", "READY", False)
    assert worker["memoryUsage"] > 1 << 20
    assert worker["startTime"].endswith("Z")
    assert manage("DELETE", "/models/described")[0] == 200


def test_a_registration_that_nobody_waits_for_goes_on(server: Server, manage: Manager) -> None:
    query = "url=noop.mar&model_name=later&initial_workers=1&synchronous=false"
    assert manage("POST", f"/models?{query}") == (202, "Processing worker updates...")
    eventually(lambda: server.post("/predictions/later", b"1").text == "OK", "its answer")
    assert manage("DELETE", "/models/later")[0] == 200
    query = "url=init-error.mar&initial_workers=1&synchronous=false"
    assert manage("POST", f"/models?{query}") == (202, "Processing worker updates...")
    eventually(lambda: manage("GET", "/models/init-error")[0] == 404, "its end")
    assert "no weights here" in server.log


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("PUT", "/models", 405, "/models takes GET, HEAD, POST, this was PUT"),
        ("POST", "/models/noop", 405, "/models/noop takes DELETE, GET, HEAD, PUT, this was POST"),
        ("GET", "/models/InvalidModel", 404, "Model not found: InvalidModel"),
        ("PUT", "/models/fake", 404, "Model not found: fake"),
        ("PUT", "/models/noop/7?min_worker=1", 404, "Model not found: noop; the model 'noop' has no version '7'"),
        ("DELETE", "/models/fake", 404, "Model not found: fake"),
        ("PUT", "/models/fake/1/set-default", 404, "Model not found: fake"),
        ("GET", "/InvalidUrl", 404, "nothing is served at /InvalidUrl"),
        ("GET", "/predictions", 404, "nothing is served at /predictions"),
        ("POST", "/models", 400, "Parameter url is required."),
        ("POST", "/models?url=noop.mar&runtime=InvalidRuntime", 400, "Invalid RuntimeType value: InvalidRuntime"),
        ("POST", "/models?url=InvalidUrl", 404, "Model not found in model store: InvalidUrl"),
        ("POST", "/models?url=..%2Ffake.mar", 404, "Relative path is not allowed in url: ../fake.mar"),
        ("POST", "/models?url=http%3A%2F%2Flocalhost%3Aaaaa", 404, "Invalid model url: http://localhost:aaaa"),
        ("POST", "/models?url=http%3A%2F%2Flocalhost%3A1%2Fx.mar", 400, "Failed to download model from: http://localh"),
        ("POST", "/models?url=noop.mar", 409, "Model noop is already registered."),
        ("POST", "/models?url=noop.mar&model_name=a%2Fb", 400, "'a/b' cannot be a model's name"),
        ("POST", "/models?url=noop.mar&model_name=x&initial_workers=many", 400, "Parameter initial_workers is 'many'"),
        ("POST", "/models?url=noop.mar&model_name=x&synchronous=7", 400, "Parameter synchronous is '7'"),
        ("PUT", "/models/noop?min_worker=2&max_worker=1", 400, "max_worker cannot be less than min_worker"),
        ("PUT", "/models/noop?min_worker=-1", 400, "Parameter min_worker is '-1'"),
        ("PUT", "/models/noop?min_worker=5000", 400, "Parameter min_worker is 5000: it is 1000 at the most"),
        ("POST", "/models?url=init-error.mar&initial_workers=1", 500, "Failed to start workers: "),
        ("POST", "/models?url=loading-memory-error.mar&initial_workers=1&synchronous=true", 507, ""),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_status(
    manage: Manager, method: str, path: str, status: int, message: str
) -> None:
    before = manage.get("/models")
    found, said = manage(method, path)
    assert found == status, said
    assert message in said
    assert manage.get("/models") == before


def test_workers_that_cannot_start_are_told_and_the_model_stays_registered(manage: Manager) -> None:
    assert manage("POST", "/models?url=init-error.mar")[0] == 200
    status, message = manage("PUT", "/models/init-error?synchronous=true&min_worker=1")
    assert status == 500
    assert message.startswith("Failed to start workers")
    assert "no weights here" in message
    assert manage.get("/models/init-error")["workers"] == []
    assert manage("DELETE", "/models/init-error")[0] == 200


def test_a_url_that_answers_404_is_told(manage: Manager, store: Path) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(store))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{web.server_address[1]}"
        status, message = manage("POST", f"/models?url={url}/missing.mar")
        assert status == 400
        assert message.startswith(f"Failed to download model from: {url}/missing.mar")
        assert "404" in message
        query = f"url={url}/noop.mar&model_name=fetched&initial_workers=1"
        assert manage("POST", f"/models?{query}") == (200, "Workers scaled")
        assert manage.get("/models/fetched")["modelUrl"] == f"{url}/noop.mar"
        assert manage("DELETE", "/models/fetched")[0] == 200
        web.shutdown()


def test_versions_stand_beside_each_other_and_one_of_them_is_the_default(server: Server, manage: Manager) -> None:
    for version in ("1.0", "2.0"):
        assert manage("POST", f"/models?url=versioned-{version}.mar&initial_workers=1") == (200, "Workers scaled")
    assert server.post("/predictions/versioned", b"1").text == "1.0"
    assert server.post("/predictions/versioned/2.0", b"1").text == "2.0"
    status, message = manage("PUT", "/models/versioned/2.0/set-default")
    assert (status, message) == (200, 'Default version successfully updated for model "versioned" to "2.0"')
    assert server.post("/predictions/versioned", b"1").text == "2.0"
    assert manage.get("/models/versioned")["modelVersion"] == "2.0"
    assert manage("PUT", "/models/versioned/1.0?min_worker=2&synchronous=true") == (200, "Workers scaled")
    assert len(manage.get("/models/versioned/1.0")["workers"]) == 2
    assert manage("DELETE", "/models/versioned/2.0")[0] == 200
    assert server.post("/predictions/versioned", b"1").text == "1.0"
    assert server.post("/predictions/versioned/2.0", b"1").status_code == 404
    assert manage("DELETE", "/models/versioned")[0] == 200
    assert server.post("/predictions/versioned", b"1").status_code == 404


def test_a_folder_without_a_manifest_is_served_by_the_handler_that_is_named(server: Server, manage: Manager) -> None:
    assert manage("POST", "/models?url=bare&initial_workers=1")[0] == 400
    query = "url=bare&handler=service:handle&initial_workers=1"
    assert manage("POST", f"/models?{query}") == (200, "Workers scaled")
    assert server.post("/predictions/bare", b"1").text == "OK"
    assert manage("DELETE", "/models/bare")[0] == 200


def test_a_handler_answers_with_headers_statuses_and_faults_of_its_own(server: Server, manage: Manager) -> None:
    assert manage("POST", "/models?url=respheader-test.mar&initial_workers=1")[0] == 200
    path = "/predictions/respheader-test"
    reply = server.post(path, b'{"a": 1}')
    assert (reply.status_code, reply.text) == (200, "{'body': {'a': 1}}")
    assert (reply.headers["dummy"], reply.headers["content-type"]) == ("1", "text/plain")
    assert "bytearray" in server.post(path, b"x", "application/octet-stream").text
    assert server.post(path, b"memory", "text/plain").status_code == 507
    status = server.post(path, b"status", "text/plain")
    assert (status.status_code, status.text) == (507, "Invalid response")
    wrong = server.post(path, b"text", "text/plain")
    assert (wrong.status_code, wrong.json()["code"]) == (503, 503)
    assert wrong.json()["message"].startswith("Invalid model predict output")
    assert manage("DELETE", "/models/respheader-test")[0] == 200


def test_mms_own_inference_requests_are_answered(server: Server, manage: Manager) -> None:
    form = {"data": "test"}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/predictions/noop", {"data": form}),
        ("/predictions/noop", {"content": b"test", "headers": {"content-type": "application/octet-stream"}}),
        ("/predictions/noop", {"json": form}),
        ("/invocations?model_name=noop", {"json": form}),
        ("/invocations?model_name=noop", {"files": {"data": ("x.txt", b"test")}}),
        ("/models/noop/invoke", {"json": form}),
        ("/models/noop/invoke", {"files": {"data": ("x.txt", b"test")}}),
        ("/noop/predict", {"data": form}),
    ]
    for path, more in asked:
        assert httpx.post(f"{server.url}{path}", **more).text == "OK", path
    assert httpx.get(f"{server.url}/ping").headers["x-request-id"]
    assert httpx.options(f"{server.url}/predictions/noop").json()["info"]["title"] == "RESTful API for: noop"
    assert httpx.options(f"{server.url}/predictions/InvalidModel").status_code == 404
    assert httpx.get(f"{server.url}/").status_code == 405
    assert httpx.get(f"{server.url}/predictions").status_code == 404
    described = httpx.options(f"{server.management}/").json()
    assert set(described["paths"]["/models"]) == {"get", "post"}


def test_an_application_takes_a_status_of_400_and_above_for_a_failure(server: Server, manage: Manager) -> None:
    assert manage("POST", "/models?url=respheader-test.mar&model_name=applied&initial_workers=1")[0] == 200
    application = {
        "name": "app",
        "input_type": "strings",
        "default_output": "none",
        "slo_micros": 30_000_000,
        "models": ["applied"],
    }
    registered = httpx.post(f"{server.management}/v1/applications", json=application, timeout=PATIENCE)
    assert registered.status_code == 201, registered.text
    # The second time too: what failed is kept in no cache.
    for _ in range(2):
        answer = server.post("/app/predict", b'{"input": "status"}').json()
        assert (answer["default"], answer["output"]) == (True, "none")
    answer = server.post("/app/predict", b'{"input": "else"}').json()
    assert answer["default"] is False
    assert httpx.delete(f"{server.management}/v1/applications/app").status_code == 204
    assert manage("DELETE", "/models/applied")[0] == 200
