"""A model's directory with ``code/inference.py``, as SageMaker's toolkit would serve it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecastle.errors import RequestError, UnknownArtifact
from forecastle.hooks import toolkit
from forecastle.messages import Part
from forecastle.models.artifact import Artifact, open_artifact
from forecastle.replica.executor import Begun, Executor, Job
from forecastle.replica.loading import load_model
from runtimes import networks


def directory(tmp_path: Path, script: str, **files: str) -> Path:
    (tmp_path / "model" / "code").mkdir(parents=True)
    for name, text in {"inference": script, **files}.items():
        (tmp_path / "model" / "code" / f"{name}.py").write_text(text)
    return tmp_path / "model"


def found(path: Path, tmp_path: Path) -> Artifact:
    return open_artifact(str(path), cache=tmp_path / "cache")


def ask(
    artifact: Artifact, data: bytes, content_type: str = "application/json", accept: str = "*/*"
) -> tuple[bytes, str]:
    hooks, _ = load_model(artifact)
    (answer,) = Executor(hooks).answer([Job("id", [Part("", content_type, data)], accept, 1e12)])
    if isinstance(answer, RequestError):
        raise answer
    assert not isinstance(answer, Begun)
    return answer


SCRIPT = """
import json
import weights_under_test

def model_fn(model_dir, context):
    assert context.system_properties["model_dir"] == model_dir
    return weights_under_test.FACTOR

def input_fn(request_body, request_content_type):
    assert isinstance(request_body, str)
    return json.loads(request_body)

def predict_fn(data, model):
    return data * model

def output_fn(prediction, accept):
    return json.dumps([prediction, accept])
"""


def test_a_directory_with_a_script_is_a_model_and_the_script_finds_the_modules_beside_it(tmp_path: Path) -> None:
    artifact = found(directory(tmp_path, SCRIPT, weights_under_test="FACTOR = 7\n"), tmp_path)
    assert (artifact.kind, artifact.runtime) == ("script directory", "script")
    body, content_type = ask(artifact, b"6")
    assert json.loads(body) == [42, "application/json"]
    assert content_type == "application/json"


def test_accept_is_the_clients_text_and_types_a_body_that_comes_alone(tmp_path: Path) -> None:
    script = "def output_fn(prediction, accept):\n    return accept\n"
    assert ask(found(directory(tmp_path, script), tmp_path), b"1", accept="text/csv") == (b"text/csv", "text/csv")


def test_the_answer_to_who_accepts_anything_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(toolkit.DEFAULT_ACCEPT, "text/csv")
    script = "def output_fn(prediction, accept, context):\n    return accept, accept\n"
    assert ask(found(directory(tmp_path, script), tmp_path), b"1") == (b"text/csv", "text/csv")


@pytest.mark.parametrize("more", ["", ", context"])
def test_transform_fn_takes_the_place_of_the_three(tmp_path: Path, more: str) -> None:
    transform = f"def transform_fn(model, data, content_type, accept{more}):\n    return model + accept, 'text/x'\n"
    script = f"def model_fn(model_dir):\n    return 'm'\n{transform}"
    assert ask(found(directory(tmp_path, script), tmp_path), b"1") == (b"mapplication/json", "text/x")


def test_the_file_can_have_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory(tmp_path, "raise AssertionError", serve="def predict_fn(data, model):\n    return data + 1\n")
    monkeypatch.setenv("SAGEMAKER_PROGRAM", "serve.py")
    assert ask(found(path, tmp_path), b"1") == (b"2", "application/json")


def test_a_script_beside_a_model_overrides_the_runtimes_hooks_one_at_a_time(tmp_path: Path) -> None:
    path = directory(tmp_path, "def output_fn(prediction, accept):\n    return str(len(prediction[0])), 'text/plain'\n")
    networks.dense(path / "m.onnx")
    artifact = found(path, tmp_path)
    assert artifact.runtime == "onnx"
    assert ask(artifact, b"[1, 2, 3]") == (b"4", "text/plain")


def test_a_code_folder_without_the_script_is_refused_with_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "model" / "code").mkdir(parents=True)
    (tmp_path / "model" / "code" / "other.txt").write_text("")
    with pytest.raises(UnknownArtifact, match=r"code/inference\.py"):
        found(tmp_path / "model", tmp_path)
