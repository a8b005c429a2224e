"""What the archivers of MMS 1.x and TorchServe make is served, in every format that they have."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from cli.process import eventually, serving
from mar.archivers import FORMATS, NOOP, mms_archive, torch_archive
from runtimes.archives import jpeg
from side import CACHE
from test_docs import ROOT, fences

pytestmark = pytest.mark.timeout(300)

VERSIONED = """
from ts.utils.util import PredictionException

class Handler:
    def initialize(self, context):
        self.manifest = context.manifest

    def handle(self, data, context):
        if any(row["body"] == "refuse" for row in data):
            raise PredictionException("not today", 418)
        return [{"version": self.manifest["model"]["modelVersion"]} for _ in data]
"""


def test_every_format_of_both_archivers_is_served(tmp_path: Path) -> None:
    models = []
    for form in FORMATS:
        models.append(f"mms-{form}={mms_archive(tmp_path / 'mms' / form, {'service.py': NOOP}, form=form)}")
        made = torch_archive(tmp_path / "torch" / form, {"service.py": VERSIONED}, form=form, version="2.5")
        models.append(f"torch-{form}={made}")
    with serving(*models, folder=tmp_path) as server:
        for form in FORMATS:
            reply = server.post(f"/predictions/mms-{form}", b"1")
            assert (reply.status_code, reply.text) == (200, "OK")
            assert server.post(f"/models/mms-{form}/invoke", b"1").text == "OK"
            assert server.post(f"/predictions/torch-{form}", b"1").json() == {"version": "2.5"}
            refused = server.post(f"/predictions/torch-{form}", b"refuse", "text/plain")
            assert (refused.status_code, refused.json()["code"], refused.json()["message"]) == (418, 418, "not today")
            # The early contract wraps JSON, and the later one's status stays.
            assert server.post(f"/torch-{form}/predict", b"1").json() == {"prediction": {"version": "2.5"}}


def test_an_archive_brings_what_it_needs_installed(tmp_path: Path) -> None:
    importing = "import iniconfig\n\ndef handle(data, context):\n    return data and [iniconfig.__name__] * len(data)\n"
    files = {"service.py": importing, "needs.txt": "iniconfig\n"}
    archive = torch_archive(tmp_path, files, "--requirements-file", "needs.txt")
    with serving(str(archive), folder=tmp_path) as server:
        assert server.post("/predictions/noop", b"1").text == "iniconfig"


def test_a_handler_that_imports_mxnet_gets_it(tmp_path: Path) -> None:
    adding = """
    import mxnet as mx
    from mms.service import PredictionException

    def handle(data, context):
        return data and [float(mx.nd.array(row["body"]).sum().asscalar()) for row in data]
    """
    archive = mms_archive(tmp_path, {"service.py": adding})
    # Where other tests have the same environment.
    with serving(str(archive), folder=tmp_path, environment={"FORECASTLE_CACHE_DIR": str(CACHE)}) as server:
        assert server.post("/predictions/noop", b"[1, 2.5]").json() == 3.5


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_torchserve_s_quick_start(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())  # which colour a picture mostly is
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(net, torch.ones(1, 3, 224, 224)), file)
    files: dict[str, str | bytes] = {"net.pt": file.getvalue()}
    files["index_to_name.json"] = '{"0": "red", "1": "green", "2": "blue"}'
    arguments = ("--serialized-file", "net.pt", "--extra-files", "index_to_name.json")
    archive = torch_archive(tmp_path, files, *arguments, name="colours", handler="image_classifier")
    with serving(str(archive), "--batch-size", "2", folder=tmp_path) as server:
        for path, more in (
            ("/predictions/colours", {"content": jpeg("blue")}),
            ("/predictions/colours/1.0", {"files": {"data": ("kitten.jpg", jpeg("blue"))}}),
        ):
            # curl -T sends a PUT, without a content type.
            answer = httpx.put(f"{server.url}{path}", timeout=60, **more).json()
            assert list(answer) == ["blue", "red", "green"] or list(answer) == ["blue", "green", "red"]
        refused = server.post("/predictions/colours", b"no picture", "image/jpeg")
        assert (refused.status_code, refused.json()["type"]) == (400, "BadInput")


def test_requests_that_wait_go_to_the_handler_together_where_that_was_asked_for(tmp_path: Path) -> None:
    counting = """
    def handle(data, context):
        return data and [str(len(data)) for _ in data]
    """
    archive = mms_archive(tmp_path, {"service.py": counting})
    with serving(str(archive), "--batch-size", "4", "--batch-delay", "2s", folder=tmp_path) as server:
        with httpx.Client() as client:
            assert client.post(f"{server.url}/predictions/noop", content=b"1").text == "1"
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(lambda _: server.post("/predictions/noop", b"1").text, range(4)))
    assert replies == ["4"] * 4


def test_the_handler_of_the_documentation_works_as_printed(tmp_path: Path) -> None:
    (printed,) = [text for text in fences(ROOT / "docs" / "archives.md", "python") if text.startswith("class Handler")]
    archive = mms_archive(tmp_path, {"service.py": printed}, handler="service")
    with serving(str(archive), folder=tmp_path) as server:
        assert server.post("/predictions/noop", b"abc", "application/octet-stream").json() == {"bytes": 3}


def test_what_was_registered_is_there_again_after_a_restart(tmp_path: Path) -> None:
    archive = torch_archive(
        tmp_path, {"service.py": VERSIONED + "\n\ndef other(data, context):\n    return ['other']\n"}
    )
    options = ("--store", str(tmp_path / "state.db"), "--model-root", str(tmp_path))
    query = {"url": archive.name, "model_name": "again", "initial_workers": "2", "handler": "service:other"}
    with serving(*options, folder=tmp_path) as server:
        reply = httpx.post(f"{server.management}/models", params=query, timeout=60)
        assert reply.json() == {"status": "Workers scaled"}
        assert server.post("/predictions/again", b"1").text == "other"
    with serving(*options, folder=tmp_path) as server:
        eventually(lambda: server.post("/predictions/again/1.0", b"1").status_code == 200, "the model")
        described = httpx.get(f"{server.management}/models/again").json()
        assert (described["minWorkers"], described["loadedAtStartup"]) == (2, False)
        assert server.post("/predictions/again", b"1").text == "other"


def test_a_registered_model_whose_archive_has_gone_is_described_and_can_be_unregistered(tmp_path: Path) -> None:
    archive = mms_archive(tmp_path, {"service.py": NOOP})
    options = ("--store", str(tmp_path / "state.db"), "--model-root", str(tmp_path))
    with serving(*options, folder=tmp_path) as server:
        query = {"url": archive.name, "initial_workers": "1"}
        assert httpx.post(f"{server.management}/models", params=query, timeout=60).status_code == 200
    archive.unlink()
    with serving(*options, folder=tmp_path) as server:
        model = f"{server.management}/models/noop"
        eventually(lambda: "reason" in httpx.get(model).json(), "the failure")
        described = httpx.get(model).json()
        assert (described["workers"], described["minWorkers"]) == ([], 1)
        assert "there is no file or directory" in described["reason"]
        assert httpx.delete(model).json() == {"status": 'Model "noop" unregistered'}
        assert httpx.get(model).status_code == 404


def test_models_of_a_multi_model_endpoint_are_managed_too(tmp_path: Path) -> None:
    archive = mms_archive(tmp_path, {"service.py": NOOP})
    environment = {"SAGEMAKER_MULTI_MODEL": "true"}
    options = ("--model-root", str(tmp_path), "--store", "memory")
    with serving(*options, folder=tmp_path, environment=environment) as server:
        loading = {"model_name": "held", "url": str(archive)}
        assert httpx.post(f"{server.url}/models", json=loading, timeout=60).status_code == 200
        assert server.post("/models/held/invoke", b"1").text == "OK"
        model = f"{server.management}/models/held"
        assert httpx.get(model).json()["modelUrl"] == str(archive)
        assert httpx.put(model, params={"min_worker": 2, "synchronous": "true"}, timeout=60).status_code == 200
        assert len(httpx.get(model).json()["workers"]) == 2
        assert httpx.delete(model, timeout=60).json() == {"status": 'Model "held" unregistered'}
        assert httpx.get(f"{server.url}/models").json() == {"models": []}
