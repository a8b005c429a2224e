"""A service that imports MXNet, served by MXNet itself."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
from examples.imagenet import archive as imagenet

from cli.process import serving

MMS = (str(Path(sys.executable).with_name("mms")), "--port", "0")
CACHE = Path(__file__).parents[2] / ".cache" / "side"

RESNET18 = """
import mxnet as mx
from mms.mxnet_utils import image
from mms.mxnet_model_service import MXNetBaseService

class Resnet18Service(MXNetBaseService):
    def _preprocess(self, data):
        img_arr = image.read(data)
        assert isinstance(img_arr, mx.nd.NDArray)
        img_arr = image.resize(img_arr, 224, 224)
        return img_arr

    def _postprocess(self, data):
        output = data[0]
        sorted = mx.nd.argsort(output[0], is_ascend=False)
        response = {}
        for i in sorted[0:5].asnumpy().astype(int):
            response[output[0][i]] = self.labels[i]
        return response
"""
"""The seed's own, where the response is made before it is filled, and an index is a whole number."""


def test_the_seed_s_service_names_the_cat_with_mxnet_s_own_arrays(tmp_path: Path) -> None:
    imagenet.build(tmp_path / "resnet-18.zip")
    imagenet.cat(tmp_path / "cat.jpg")
    (tmp_path / "resnet18_service.py").write_text(RESNET18)
    arguments = ("--models", "resnet-18=resnet-18.zip", "--process", "resnet18_service.py")
    environment = {"XDG_CACHE_HOME": str(CACHE.parent), "FORECASTLE_CACHE_DIR": str(CACHE)}
    with serving(*arguments, folder=tmp_path, command=MMS, environment=environment) as server:
        files = {"input0": ("white-sleeping-kitten.jpg", (tmp_path / "cat.jpg").read_bytes(), "image/jpeg")}
        reply = httpx.post(f"{server.url}/resnet-18/predict", files=files, timeout=60)
        assert reply.status_code == 200, reply.text
        best = {float(score): name for score, name in reply.json()["prediction"].items()}
        assert len(best) == 5
        assert best[max(best)].endswith("cat")
