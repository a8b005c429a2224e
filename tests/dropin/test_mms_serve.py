from __future__ import annotations

import io
import json
import re
import signal
import sys
import zipfile
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

from cli.process import SHIPPING, serving, starting
from forecastle.runtimes.mxnet import params

MMS = (str(Path(sys.executable).with_name("mms")), "--port", "0")


def test_several_models_are_served_on_one_port_until_a_signal(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "shipping.py").write_text(SHIPPING)
    arguments = ("--model", "resnet-18=file://models/shipping.py", "vgg16=models/shipping.py")
    with serving(*arguments, folder=tmp_path, command=MMS) as server:
        for name in ("resnet-18", "vgg16"):
            reply = server.post(f"/{name}/predict", b'{"location": "Fair Isle"}')
            assert reply.json()["prediction"]["location"] == "Fair Isle"
        server.signal(signal.SIGTERM)
        assert server.end() == 0


def test_a_missing_archive_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with starting("--models", "resnet-18=resnet-18.zip", folder=tmp_path, command=MMS) as server:
        assert server.end() == 1
        assert server.log.splitlines()[-1].startswith("mms: ")
        assert "resnet-18.zip" in server.log.splitlines()[-1]
        assert "Traceback" not in server.log


def classifier(path: Path) -> Path:
    """An archive in MMS's form: a picture of 8 x 8 in, one of six labels out by how red, green or blue it is."""
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "Flatten", "name": "flat", "inputs": [[0, 0, 0]]},
        {"op": "null", "name": "fc_weight", "inputs": []},
        {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "6", "no_bias": "True"},
         "inputs": [[1, 0, 0], [2, 0, 0]]},
        {"op": "softmax", "name": "softmax", "inputs": [[3, 0, 0]]},
    ]  # fmt: skip
    symbol = {"nodes": nodes, "arg_nodes": [0, 2], "node_row_ptr": list(range(6)), "heads": [[4, 0, 0]]}
    weights = np.zeros((6, 3, 64), np.float32)
    for channel in range(3):
        weights[channel, channel] = 1e-3
    params.save(path.with_suffix(".params"), {"arg:fc_weight": weights.reshape(6, 192)})
    signature = {
        "inputs": [{"data_name": "data", "data_shape": [0, 3, 8, 8]}],
        "input_type": "image/jpeg",
        "outputs": [{"data_name": "softmax", "data_shape": [0, 6]}],
        "output_type": "application/json",
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}-symbol.json", json.dumps(symbol))
        archive.write(path.with_suffix(".params"), f"{path.stem}-0000.params")
        archive.writestr("signature.json", json.dumps(signature))
        archive.writestr("synset.txt", "red\ngreen\nblue\nx\ny\nz\n")
    return path


def test_an_archive_names_a_picture_s_class_as_the_seed_shows_it(tmp_path: Path) -> None:
    classifier(tmp_path / "colours.zip")
    picture = io.BytesIO()
    Image.new("RGB", (20, 10), (10, 20, 250)).save(picture, "PNG")
    arguments = ("--models", "resnet-18=colours.zip", "--process", "mxnet_vision_service")
    with serving(*arguments, folder=tmp_path, command=MMS) as server:
        assert re.split(r"\s{2,}", server.table[1])[:3] == ["resnet-18", "1", "mxnet"]
        for field in ("input0", "data"):
            files = {field: ("kitten.png", picture.getvalue(), "image/png")}
            reply = httpx.post(f"{server.url}/resnet-18/predict", files=files, timeout=60)
            assert reply.status_code == 200, reply.text
            [best] = reply.json()["prediction"]
            assert [label["class"] for label in best][:1] == ["blue"]
            assert len(best) == 5
            assert all(set(label) == {"class", "probability"} for label in best)
