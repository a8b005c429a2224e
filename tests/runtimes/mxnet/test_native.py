"""MXNet itself beside our importer: the same archives, the same answers. It runs in an environment of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.imagenet import archive as imagenet

from cli.process import serving, starting
from forecastle.cluster.environments.mxnet import requirements
from forecastle.models.artifact import Artifact
from forecastle.models.engines import CONVERTED, needs_mxnet
from forecastle.runtimes import mxnet
from forecastle.runtimes.mxnet.operators import OPERATORS
from forecastle.runtimes.vision import decode_image
from runtimes.archives import colours, jpeg, node, signature, write
from runtimes.mxnet.test_importer import BATCH_AXIS, GRAPHS, reference
from side import side_environment

RUN = """
import sys
import numpy as np
from forecastle.models.artifact import Artifact
from forecastle.runtimes import mxnet_native

model = mxnet_native.open(Artifact("mms archive", "mxnet_native", sys.argv[1], "m")).model_fn("")
with np.load(sys.argv[2]) as file:
    batches = dict(file)
count = len({name.partition(" ")[0] for name in batches})
names = [tensor.name for tensor in model.signature.inputs]
answers = {}
for batch in range(count):
    for index, output in enumerate(model.run({name: batches[f"{batch} {name}"] for name in names})):
        answers[f"{batch} {index}"] = output
np.savez(sys.argv[3], **answers)
"""


@pytest.fixture(scope="module")
def python() -> str:
    return side_environment(*requirements())


def native(python: str, folder: Path, batches: list[dict[str, Any]], where: Path) -> list[list[Any]]:
    """What MXNet answers to each batch, for each output."""
    sent, got = where / "sent.npz", where / "got.npz"
    np.savez(sent, **{f"{index} {name}": array for index, batch in enumerate(batches) for name, array in batch.items()})
    command = [python, "-c", RUN, str(folder), str(sent), str(got)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(got) as file:
        outputs = len(file.files) // len(batches)
        return [[file[f"{batch} {index}"] for index in range(outputs)] for batch in range(len(batches))]


@pytest.mark.parametrize("name", ["caffenet", "fcn", "inception_bn", "mobilenet0.25", "lstm_ptb", "rnn_lstm"])
def test_mxnet_answers_as_the_reference_says_in_any_batch(python: str, tmp_path: Path, name: str) -> None:
    inputs, expected = reference(name)
    shutil.copytree(GRAPHS / name, tmp_path / "m")
    shapes = {key: list(array.shape) for key, array in inputs.items()}
    for key, shape in shapes.items():
        shape[BATCH_AXIS.get(key, 0)] = 0
    (tmp_path / "m" / "signature.json").write_text(json.dumps(signature(shapes, {"out": [0]}, "application/json")))
    batches = [inputs]
    if name != "rnn_lstm":
        batches += [{key: np.repeat(array[:1], count, 0) for key, array in inputs.items()} for count in (1, 3, 5)]
    whole, *repeated = native(python, tmp_path / "m", batches, tmp_path)
    np.testing.assert_allclose(whole[0], expected["out_0"], rtol=1e-4, atol=1e-5)
    for answer, count in zip(repeated, (1, 3, 5), strict=False):
        rows = len(expected["out_0"]) // inputs["data"].shape[0]  # a language model gives one for each word
        wanted = np.concatenate([expected["out_0"][:rows]] * count)
        np.testing.assert_allclose(answer[0], wanted, rtol=1e-4, atol=1e-5)


def test_both_engines_answer_alike_to_pictures(python: str, tmp_path: Path) -> None:
    imagenet.build(tmp_path / "m.zip")
    shutil.unpack_archive(tmp_path / "m.zip", tmp_path / "m")
    imagenet.cat(tmp_path / "cat.jpg")
    pictures = [(tmp_path / "cat.jpg").read_bytes(), jpeg("lime"), jpeg("navy")]
    stack = np.stack([decode_image(picture, 224, 224, 3, "float32") for picture in pictures])
    converted = mxnet.open(Artifact("mms archive", "mxnet", str(tmp_path / "m"), "m")).model_fn("")
    feed = {converted.signature.inputs[0].name: stack}
    ours, theirs = converted.run(feed)[0], native(python, tmp_path / "m", [feed], tmp_path)[0][0]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert ours.argmax(1).tolist() == theirs.argmax(1).tolist()


def test_the_operators_that_are_said_to_be_converted_are_those_that_are() -> None:
    assert sorted(CONVERTED) == sorted(OPERATORS)


def smooth(path: Path) -> Path:
    """A network with an operator that is not converted: the smooth L1 loss of each number."""
    nodes = [node("null", "data"), node("smooth_l1", "loss", 0, scalar=1.0)]
    return write(path, nodes, {}, signature({"data": [0, 2]}, {"loss": [0, 2]}, "application/json"))


def unpacked(archive: Path) -> Artifact:
    folder = archive.with_suffix("")
    shutil.unpack_archive(archive, folder)
    service = folder / "service.py"
    return Artifact("mms archive", "mxnet", str(folder), "m", service=str(service) if service.exists() else "")


def test_an_archive_needs_mxnet_for_an_operator_or_a_service_that_imports_it(tmp_path: Path) -> None:
    assert needs_mxnet(unpacked(colours(tmp_path / "plain.zip"))) == ""
    assert needs_mxnet(unpacked(smooth(tmp_path / "smooth.zip"))) == "the operator smooth_l1 is run by MXNet alone"
    service = "def late():\n    import mxnet as mx\n"
    assert needs_mxnet(unpacked(colours(tmp_path / "own.zip", service_py=service))) == "service.py imports mxnet"


def test_what_needs_mxnet_is_run_by_it_and_the_rest_is_not_unless_asked_for(tmp_path: Path) -> None:
    smooth(tmp_path / "smooth.zip")
    colours(tmp_path / "colours.zip")
    cache = Path(__file__).parents[3] / ".cache" / "side"
    settings = '[models]\ndefault = "colours.zip"\n[models.smooth]\nsource = "smooth.zip"\n'
    (tmp_path / "forecastle.toml").write_text(f'{settings}[models.asked]\nsource = "colours.zip"\nengine = "mxnet"\n')
    with serving("--cache-dir", str(cache), folder=tmp_path) as server:
        assert {line.split()[0]: line.split()[2] for line in server.table[1:]} == {
            "default": "mxnet",
            "smooth": "mxnet_native",
            "asked": "mxnet_native",
        }
        assert server.post("/smooth/predict", b"[[0.5, -3]]").json() == {"prediction": [[[0.125, 2.5]]]}
        answers = [server.post(f"/{name}/predict", jpeg("red"), "image/jpeg").json() for name in ("default", "asked")]
        assert [answer["prediction"][0][0]["class"] for answer in answers] == ["red", "red"]
        scores = [[best["probability"] for best in answer["prediction"][0]] for answer in answers]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-4)


def test_an_operator_that_is_not_converted_is_refused_by_the_engine_that_converts(tmp_path: Path) -> None:
    smooth(tmp_path / "smooth.zip")
    with starting("smooth.zip", "--engine", "onnx", folder=tmp_path) as server:
        assert server.end() == 1
        assert "smooth_l1" in server.log
        assert "--engine mxnet has MXNet itself run it" in server.log
