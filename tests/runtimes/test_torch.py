from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadArtifact, BadInput, PredictionFailed
from forecastle.hooks.resolve import Hooks
from forecastle.media import CSV, NPY, NPZ
from forecastle.models.artifact import open_artifact
from forecastle.models.signature import Signature
from forecastle.replica.executor import Executor, Job
from forecastle.replica.loading import load_model
from runtimes.test_tensor import ask, raw

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test TORCH=torch==2.13.0")

# TorchScript's own opinion of itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

ROWS = np.random.default_rng(7).normal(size=(5, 4)).astype(np.float32)
BATCH = "batch"


class Net(torch.nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))

    def forward(self, features):  # type: ignore[no-untyped-def]
        return self.layers(features)


class TwoHeads(Net):
    def forward(self, features):  # type: ignore[no-untyped-def]
        scores = self.layers(features)
        return {"scores": scores, "best": scores.argmax(1)}


def traced(path: Path, net: Any = None) -> Path:
    torch.jit.trace(net or Net(), torch.zeros(2, 4), strict=False).save(str(path))
    return path


def scripted(path: Path) -> Path:
    torch.jit.script(Net()).save(str(path))
    return path


def exported(path: Path) -> Path:
    shapes = ({0: torch.export.Dim(BATCH)},)
    torch.export.save(torch.export.export(Net(), (torch.zeros(2, 4),), dynamic_shapes=shapes), str(path))
    return path


FILES = {"traced": traced, "exported": exported}


def served(path: Path) -> tuple[Hooks, Signature | None]:
    hooks, info = load_model(open_artifact(str(path), cache=path.parent / "cache"))
    assert info.runtime == "torch"
    return hooks, info.signature


def expected(rows: Any, net: Any = None) -> Any:
    with torch.no_grad():
        return (net or Net())(torch.from_numpy(np.asarray(rows, np.float32)))


@pytest.mark.parametrize("write", FILES.values(), ids=list(FILES))
def test_a_program_answers_as_the_module_does_in_json_csv_and_npy(write: Any, tmp_path: Path) -> None:
    hooks, signature = served(write(tmp_path / "net.pt"))
    assert signature is not None
    assert signature.inputs[0].shape == (None, 4)
    npy = io.BytesIO()
    np.save(npy, ROWS)
    csv = "\n".join(",".join(map(str, row)) for row in ROWS.tolist()).encode()
    for sent in (raw(ROWS.tolist()), raw(npy.getvalue(), NPY), raw(csv, CSV), raw({"features": ROWS.tolist()})):
        np.testing.assert_allclose(ask(hooks, sent)[0][0], expected(ROWS), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.load(io.BytesIO(ask(hooks, raw(ROWS.tolist()), NPY)[0])), expected(ROWS), rtol=1e-5)
    with pytest.raises(BadInput, match=r"features has shape \(5\); expected \(any, 4\)"):
        ask(hooks, raw([1, 2, 3, 4, 5]))


@pytest.mark.parametrize("write", FILES.values(), ids=list(FILES))
def test_a_batch_gives_what_each_row_gets_alone(write: Any, tmp_path: Path) -> None:
    hooks, _ = served(write(tmp_path / "net.pt"))
    jobs = [Job(str(index), raw(row.tolist()), "*/*", 1e12) for index, row in enumerate(ROWS)]
    for answer, scores in zip(Executor(hooks).answer(jobs), expected(ROWS), strict=True):
        assert isinstance(answer, tuple)
        np.testing.assert_allclose(json.loads(answer[0])[0], scores, rtol=1e-4, atol=1e-6)


def test_outputs_by_name_keep_their_names(tmp_path: Path) -> None:
    hooks, signature = served(traced(tmp_path / "net.pt", TwoHeads()))
    assert signature is not None
    assert [(tensor.name, tensor.dtype) for tensor in signature.outputs] == [("scores", "float32"), ("best", "int64")]
    arrays = np.load(io.BytesIO(ask(hooks, raw(ROWS.tolist()), NPZ)[0]))
    assert arrays["best"].tolist() == expected(ROWS).argmax(1).tolist()


def test_a_scripted_program_is_served_and_takes_its_shape_from_a_signature_beside_it(tmp_path: Path) -> None:
    path = scripted(tmp_path / "net.pt")
    hooks, signature = served(path)
    assert signature is not None
    assert signature.inputs[0].shape == ()
    np.testing.assert_allclose(ask(hooks, raw(ROWS.tolist()))[0][0], expected(ROWS), rtol=1e-4, atol=1e-6)
    with pytest.raises(PredictionFailed):
        ask(hooks, raw([[1.0, 2.0]]))
    stated = {"inputs": [{"data_name": "x", "data_shape": [0, 4]}], "input_type": "application/json"}
    path.with_name("signature.json").write_text(json.dumps(stated))
    hooks, signature = served(path)
    assert signature is not None
    assert signature.inputs[0].name == "x"
    np.testing.assert_allclose(ask(hooks, raw(ROWS[0].tolist()))[0][0], expected(ROWS)[0], rtol=1e-4, atol=1e-6)
    with pytest.raises(BadInput):
        ask(hooks, raw([[1.0, 2.0]]))


def test_weights_alone_are_refused_with_what_to_do(tmp_path: Path) -> None:
    torch.save(Net().state_dict(), tmp_path / "net.pt")
    with pytest.raises(BadArtifact, match=r"weights without their program: save the model with torch\.jit\.save"):
        open_artifact(str(tmp_path / "net.pt"), cache=tmp_path / "cache")


def test_weights_are_served_by_a_script_that_makes_their_module(tmp_path: Path) -> None:
    torch.save(Net().layers.state_dict(), tmp_path / "model.pth")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "inference.py").write_text(
        "import torch\n"
        "def model_fn(model_dir):\n"
        "    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))\n"
        "    net.load_state_dict(torch.load(model_dir + '/model.pth'))\n"
        "    return net.eval()\n"
        "def predict_fn(data, model):\n"
        "    with torch.no_grad():\n"
        "        return model(torch.tensor(data, dtype=torch.float32)).numpy()\n"
    )
    hooks, info = load_model(open_artifact(str(tmp_path), cache=tmp_path / "cache"))
    assert info.runtime == "script"
    np.testing.assert_allclose(ask(hooks, raw(ROWS.tolist()))[0], expected(ROWS), rtol=1e-4, atol=1e-6)


def test_a_damaged_program_is_refused_with_pytorchs_reason(tmp_path: Path) -> None:
    whole = traced(tmp_path / "whole.pt")
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / "net.pt", "w") as damaged:
        for name in source.namelist():
            if "code/" not in name:
                damaged.writestr(name, source.read(name))
    with pytest.raises(BadArtifact, match=r"net\.pt cannot be loaded by PyTorch: "):
        served(tmp_path / "net.pt")
