from __future__ import annotations

import json
import sys
from pathlib import Path

import httpx
import pytest
from examples.imagenet import archive as imagenet

from cli.process import Server, serving, starting
from runtimes.archives import colours, doubling, jpeg

MMS = (str(Path(sys.executable).with_name("mms")), "--port", "0")

RESNET18 = """
import numpy as np
from mms.mxnet_utils import image
from mms.mxnet_model_service import MXNetBaseService

class Resnet18Service(MXNetBaseService):
    def _preprocess(self, data):
        img_arr = image.read(data)
        img_arr = image.resize(img_arr, 224, 224)
        return img_arr

    def _postprocess(self, data):
        output = data[0]
        sorted = np.argsort(-output[0])
        response = {}
        for i in sorted[0:5]:
            response[output[0][i]] = self.labels[i]
        return response
"""
"""The seed's own, where mx.nd.argsort(…, is_ascend=False) is numpy's, and the response is made before it is filled."""

SECRET = """
from mms.model_service.mxnet_vision_service import MXNetVisionService
import beside

class Mine(MXNetVisionService):
    def _postprocess(self, data):
        if data[0][0].argmax() == 0:
            raise RuntimeError("red is not for me")
        return beside.NAME
"""


def ask(server: Server, model: str, colour: str, field: str = "input0") -> httpx.Response:
    files = {field: ("kitten.jpg", jpeg(colour), "image/jpeg")}
    return httpx.post(f"{server.url}/{model}/predict", files=files, timeout=60)


def test_the_seed_s_service_names_the_cat(tmp_path: Path) -> None:
    imagenet.build(tmp_path / "resnet-18.zip")
    imagenet.cat(tmp_path / "cat.jpg")
    (tmp_path / "resnet18_service.py").write_text(RESNET18)
    arguments = ("--models", "resnet-18=resnet-18.zip", "--process", "resnet18_service")
    with serving(*arguments, folder=tmp_path, command=MMS) as server:
        assert server.table[1].split()[:3] == ["resnet-18", "1", "service"]
        files = {"input0": ("white-sleeping-kitten.jpg", (tmp_path / "cat.jpg").read_bytes(), "image/jpeg")}
        reply = httpx.post(f"{server.url}/resnet-18/predict", files=files, timeout=60)
        assert reply.status_code == 200, reply.text
        best = {float(score): name for score, name in reply.json()["prediction"].items()}
        assert len(best) == 5
        assert best[max(best)].endswith("cat")


def test_each_model_has_a_service_of_its_own(tmp_path: Path) -> None:
    manifest = json.dumps({"Model": {"Service": "mine.py"}})
    colours(tmp_path / "packed.model", mine_py=SECRET, beside_py="NAME = 'packed'", MANIFEST_json=manifest)
    colours(tmp_path / "plain.zip")
    (tmp_path / "named.py").write_text(SECRET.replace("beside.NAME", "'named'").replace("import beside", ""))
    arguments = ("--models", "a=packed.model", "b=plain.zip", "c=packed.model", "d=packed.model")
    services = ("--process", "c=named.py:Mine", "--service", "d=mxnet_vision_service")
    with serving(*arguments, *services, folder=tmp_path, command=MMS) as server:
        assert [line.split()[2] for line in server.table[1:5]] == ["service", "mxnet", "service", "mxnet"]
        assert ask(server, "a", "lime").json() == {"prediction": "packed"}
        assert ask(server, "b", "lime").json()["prediction"][0][0]["class"] == "green"
        assert ask(server, "c", "lime", "data").json() == {"prediction": "named"}
        assert ask(server, "d", "lime").json()["prediction"][0][0]["class"] == "green"
        failed = ask(server, "a", "red")
        assert failed.status_code == 500
        assert (
            failed.json()["message"]
            == "the step postprocess of the service Mine raised RuntimeError: red is not for me"
        )
        assert "mine.py" in server.log
        broken = httpx.post(f"{server.url}/a/predict", files={"input0": ("a.jpg", b"no", "image/jpeg")}, timeout=60)
        assert broken.status_code == 400
        assert httpx.get(f"{server.url}/ping", timeout=60).status_code == 200


def test_a_service_of_a_package_is_found_from_the_working_folder(tmp_path: Path) -> None:
    doubling(tmp_path / "double.zip")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").touch()
    (tmp_path / "pack" / "words.py").write_text("NAME = 'relative'\n")
    (tmp_path / "pack" / "mine.py").write_text(
        "from mms.mxnet_model_service import MXNetBaseService\n"
        "from .words import NAME\n"
        "class Mine(MXNetBaseService):\n"
        "    def _postprocess(self, data): return [NAME, data]\n"
    )
    arguments = ("--models", "double=double.zip", "--process", "pack.mine")
    with serving(*arguments, folder=tmp_path, command=MMS) as server:
        reply = server.post("/double/predict", b"[1, 2, 3]")
        assert reply.json() == {"prediction": ["relative", [[[2, 4, 6]]]]}


@pytest.mark.parametrize(
    ("service", "code", "message"),
    [
        ("x = 1\n", 1, "mine.py has no service class"),
        (None, 2, "the service mine.py: there is no file at"),
    ],
)
def test_a_service_that_cannot_be_used_ends_the_start_with_a_sentence(
    tmp_path: Path, service: str | None, code: int, message: str
) -> None:
    doubling(tmp_path / "double.zip")
    if service is not None:
        (tmp_path / "mine.py").write_text(service)
    arguments = ("--models", "double=double.zip", "--process", "mine.py")
    with starting(*arguments, folder=tmp_path, command=MMS) as server:
        assert server.end() == code
        assert message in server.log
        assert "Traceback" not in server.log


def test_a_hook_file_takes_no_service(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def predict_fn(data, model): return data\n")
    arguments = ("--models", "hooks=hooks.py", "--process", "mxnet_vision_service")
    with starting(*arguments, folder=tmp_path, command=MMS) as server:
        assert server.end() == 2
        assert "hooks.py is a hook file, which has its own hooks; leave the service out" in server.log
