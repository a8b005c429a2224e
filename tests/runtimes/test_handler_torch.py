"""TorchServe's BaseHandler, over TorchScript and over a class with weights."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from forecastle.errors import LoadFailed
from forecastle.messages import Part
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Answer, Executor, Job
from forecastle.replica.loading import load_model
from runtimes.handlers import make_mar

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

HANDLER = """
from ts.torch_handler.base_handler import BaseHandler

class Doubling(BaseHandler):
    def postprocess(self, data):
        return [self.mapping[str(int(row[0]))] if self.mapping else row for row in data.tolist()]
"""
NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.factor
"""


def weights(value: object, *, scripted: bool = False) -> bytes:
    file = io.BytesIO()
    (torch.jit.save if scripted else torch.save)(value, file)
    return file.getvalue()


def doubling() -> bytes:
    class Doubling(torch.nn.Module):  # type: ignore[misc, name-defined] # torch has no types for us
        def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
            return x * 2

    return weights(torch.jit.trace(Doubling(), torch.ones(1, 2)), scripted=True)


def answers(archive: Path) -> list[Answer]:
    artifact = open_artifact(str(archive), cache=archive.parent / "cache")
    hooks, _ = load_model(artifact, name="net", batch_size=2)
    bodies = [b"[1.0, 2.0]", b"[3.0, 4.0]"]
    jobs = [Job(str(index), [Part("", "application/json", body)], "*/*", 1.0) for index, body in enumerate(bodies)]
    return Executor(hooks, clock=lambda: 0.0).answer(jobs)


def test_torchscript_is_loaded_and_a_batch_predicted_together(tmp_path: Path) -> None:
    archive = make_mar(tmp_path / "net.mar", {"my.py": HANDLER, "net.pt": doubling()}, "my.py", serializedFile="net.pt")
    assert answers(archive) == [(b"[2.0,4.0]", "application/json"), (b"[6.0,8.0]", "application/json")]


def test_a_class_is_loaded_with_its_weights_and_names(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "my.py": HANDLER,
        "net.py": NET,
        "net.pth": weights({"factor": torch.full((1,), 3.0)}),
        "index_to_name.json": json.dumps({"3": "three", "9": "nine"}),
    }
    archive = make_mar(tmp_path / "net.mar", files, "my.py", serializedFile="net.pth", modelFile="net.py")
    text = "text/plain; charset=utf-8"
    assert answers(archive) == [(b"three", text), (b"nine", text)]


def test_an_archive_without_a_model_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="neither a serializedFile nor a modelFile"):
        answers(make_mar(tmp_path / "net.mar", {"my.py": HANDLER}, "my.py"))
