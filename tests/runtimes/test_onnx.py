from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature, Tensor
from forecastle.runtimes import onnx, threads
from runtimes import networks


def signature(artifact: Artifact) -> Signature:
    runtime = onnx.open(artifact)
    runtime.model_fn("")
    assert runtime.signature is not None
    return runtime.signature


def test_names_types_and_shapes_come_from_the_model(tmp_path: Path) -> None:
    found = signature(networks.two_inputs(tmp_path / "m.onnx"))
    assert found.inputs == (Tensor("a", (None, 2), "int64"), Tensor("b", (None, 2), "float32"))
    assert found.outputs == (Tensor("sum", (None, 2), "float32"),)


def test_a_directory_with_one_model_is_that_model(tmp_path: Path) -> None:
    networks.dense(tmp_path / "m.onnx")
    found = signature(Artifact("onnx", "onnx", str(tmp_path), "here"))
    assert [tensor.name for tensor in found.inputs] == ["x"]


def stated(path: Path, **changes: object) -> None:
    values = {
        "inputs": [{"data_name": "x", "data_shape": [0, 3]}],
        "input_type": "application/json",
        "outputs": [{"data_name": "scores", "data_shape": [0, 4]}],
        "output_type": "application/json",
    }
    (path / "signature.json").write_text(json.dumps(values | changes))


def test_a_signature_beside_the_model_is_held_against_it(tmp_path: Path) -> None:
    artifact = networks.dense(tmp_path / "m.onnx")
    stated(tmp_path)
    assert signature(artifact).inputs == (Tensor("x", (None, 3)),)
    stated(tmp_path, inputs=[{"data_name": "data", "data_shape": [0, 3]}])
    with pytest.raises(BadArtifact, match=r"names the inputs \['data'\], the model has \['x'\]"):
        signature(artifact)
    stated(tmp_path, inputs=[{"data_name": "x", "data_shape": [0, 5]}])
    with pytest.raises(BadArtifact, match=r"the shape \[0, 5\], the model has \[0, 3\]"):
        signature(artifact)
    stated(tmp_path, outputs=[{"data_name": "scores", "data_shape": [0]}])
    with pytest.raises(BadArtifact, match="the output 'scores'"):
        signature(artifact)


def test_a_broken_model_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    artifact = networks.dense(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadArtifact, match=r"m\.onnx cannot be loaded by onnxruntime") as caught:
        signature(artifact)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", ""])
def test_a_wrong_number_of_threads_is_refused_with_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(threads.THREADS, value)
    with pytest.raises(LoadFailed, match=f"{threads.THREADS} is {value!r}"):
        signature(networks.dense(tmp_path / "m.onnx"))
