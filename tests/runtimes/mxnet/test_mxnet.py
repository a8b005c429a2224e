from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from forecastle import media
from forecastle.errors import BadArtifact, BadInput, LoadFailed
from forecastle.messages import Part
from forecastle.models.artifact import Artifact
from forecastle.runtimes.mxnet import open as open_mxnet
from forecastle.runtimes.mxnet.params import save
from forecastle.runtimes.mxnet.symbol import SymbolBuilder
from forecastle.runtimes.tensor import TensorRuntime

GRAPHS = Path(__file__).parents[2] / "data/graphs"


def archive(directory: Path, graph: str, shape: list[int], **more: Any) -> Artifact:
    for name in ("m-symbol.json", "m-0000.params"):
        shutil.copyfile(GRAPHS / graph / name, directory / name)
    return described(directory, shape, **more)


def described(directory: Path, shape: list[int], **more: Any) -> Artifact:
    signature = {"inputs": [{"data_name": "data", "data_shape": shape}], "input_type": media.JSON, **more}
    (directory / "signature.json").write_text(json.dumps(signature))
    return Artifact("mms archive", "mxnet", str(directory), "model.zip")


def loaded(artifact: Artifact) -> tuple[TensorRuntime, Any]:
    runtime = open_mxnet(artifact)
    return runtime, runtime.model_fn(artifact.path)


def ask(artifact: Artifact, *bodies: Part) -> list[Any]:
    runtime, model = loaded(artifact)
    predictions = runtime.predict_batch_fn([runtime.inputs_fn([body]) for body in bodies], model)
    return [json.loads(runtime.output_fn(prediction, media.accept(media.JSON))[0]) for prediction in predictions]


def test_requests_are_answered_together_as_mxnet_answers_them(tmp_path: Path) -> None:
    with np.load(GRAPHS / "lstm_ptb/ref.npz") as file:
        data, expected = file["in_data"], file["out_0"].reshape(3, 7, 50)
    bodies = [Part("", media.JSON, json.dumps(row[None].tolist()).encode()) for row in data]
    answers = ask(archive(tmp_path, "lstm_ptb", [0, 7]), *bodies)
    for answer, wanted in zip(answers, expected, strict=True):
        np.testing.assert_allclose(np.squeeze(answer), wanted, rtol=0, atol=1e-5)


def test_a_picture_is_given_its_five_best_labels(tmp_path: Path) -> None:
    artifact = archive(tmp_path, "mobilenet0.25", [0, 3, 96, 96], input_type="image/jpeg")
    (tmp_path / "synset.txt").write_text("".join(f"n{i:08d} thing {i}\n" for i in range(100)))
    picture = io.BytesIO()
    Image.new("RGB", (20, 30), "teal").save(picture, "JPEG")
    (answer,) = ask(artifact, Part("input0", "image/jpeg", picture.getvalue()))
    assert [len(row) for row in answer] == [5]
    probabilities = [entry["probability"] for entry in answer[0]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert all(entry["class"].split(" thing ")[0].startswith("n") for entry in answer[0])


def test_the_signature_is_known_once_the_model_is_loaded(tmp_path: Path) -> None:
    runtime, _ = loaded(archive(tmp_path, "fcn", [0, 3, 32, 32]))
    assert runtime.signature is not None
    assert [(tensor.name, tensor.shape) for tensor in runtime.signature.outputs] == [
        ("softmax_output", (None, 13, 32, 32))
    ]


def test_an_input_of_another_shape_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="data has shape"):
        ask(archive(tmp_path, "fcn", [0, 3, 32, 32]), Part("", media.JSON, b"[[[[1, 2]]]]"))


def test_a_network_that_cannot_run_on_its_own_shapes_is_refused_at_load(tmp_path: Path) -> None:
    builder = SymbolBuilder()
    thirds = builder.op("Reshape", "thirds", [builder.variable("data")], shape=(-4, 3, -1, -2))
    (tmp_path / "m-symbol.json").write_bytes(builder.write(thirds))
    save(tmp_path / "m-0000.params", {})
    with pytest.raises(BadArtifact, match=r"^model\.zip cannot be run on inputs of its signature's shapes: .*Reshape"):
        loaded(described(tmp_path, [0, 4]))


def test_an_unsupported_operator_is_refused_at_load(tmp_path: Path) -> None:
    artifact = archive(tmp_path, "fcn", [0, 3, 32, 32])
    symbol = tmp_path / "m-symbol.json"
    symbol.write_text(symbol.read_text().replace('"UpSampling"', '"Custom"'))
    with pytest.raises(LoadFailed, match="the operator 'Custom'"):
        loaded(artifact)
