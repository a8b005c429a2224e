"""TorchServe's BaseHandler, over TorchScript and over a class with weights."""

from __future__ import annotations

import base64
import importlib
import io
import json
from pathlib import Path

import pytest
from PIL import Image

from forecastle.errors import BadInput, LoadFailed
from forecastle.messages import Part
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Answer, Executor, Job
from forecastle.replica.loading import load_model
from runtimes.archives import jpeg
from runtimes.handlers import make_mar

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
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


class Corner(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Scores are the means of the channels: what a picture mostly is wins."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        return x.mean(dim=(2, 3))


def classifier(folder: Path, **files: str | bytes) -> Path:
    traced = weights(torch.jit.trace(Corner(), torch.ones(1, 3, 224, 224)), scripted=True)
    return make_mar(folder / "net.mar", {"net.pt": traced, **files}, "image_classifier", serializedFile="net.pt")


def test_torchserve_s_classifier_names_what_is_in_a_picture(tmp_path: Path) -> None:
    names = json.dumps({"0": ["n1", "red"], "1": "green", "2": "blue"})
    artifact = open_artifact(str(classifier(tmp_path, **{"index_to_name.json": names})), cache=tmp_path / "cache")
    hooks, _ = load_model(artifact, batch_size=4)
    sent = [
        Part("data", "image/jpeg", jpeg("red")),
        Part("", "image/jpeg", jpeg("blue")),
        Part("", "text/plain", base64.b64encode(jpeg("lime"))),
        Part("", "text/plain", b"no picture"),
    ]
    jobs = [Job(str(index), [part], "*/*", 1.0) for index, part in enumerate(sent)]
    *answered, refused = Executor(hooks, clock=lambda: 0.0).answer(jobs)
    told = [json.loads(answer[0]) for answer in answered if isinstance(answer, tuple)]
    assert [max(each, key=each.get) for each in told] == ["red", "blue", "green"]
    assert [set(each) for each in told] == [{"red", "green", "blue"}] * 3
    assert all(sum(each.values()) == pytest.approx(1) for each in told)
    assert isinstance(refused, BadInput)


@pytest.mark.parametrize("size", [(300, 500), (501, 300), (224, 224), (10, 1000)])
def test_a_picture_is_scaled_cut_and_normalised(size: tuple[int, int]) -> None:
    vision = importlib.import_module("forecastle.runtimes.handler.vision")
    # Left half black, right half white: the cut is from the middle, so the halves stay halves.
    picture = Image.new("RGB", size, "white")
    picture.paste("black", (0, 0, size[0] // 2, size[1]))
    pixels = vision.ImageClassifier().image_processing(picture)
    assert tuple(pixels.shape) == (3, 224, 224)
    black, white = ([(value - mean) / std for mean, std in zip(MEAN, STD, strict=True)] for value in (0.0, 1.0))
    assert pixels[:, 112, 20].tolist() == pytest.approx(black, abs=1e-5)
    assert pixels[:, 112, 200].tolist() == pytest.approx(white, abs=1e-5)


def test_a_handler_of_torchserve_s_that_is_not_here_is_named(tmp_path: Path) -> None:
    archive = make_mar(tmp_path / "net.mar", {"net.pt": doubling()}, "text_classifier", serializedFile="net.pt")
    with pytest.raises(
        LoadFailed, match=r"text_classifier is one of TorchServe's that is not here \(base_handler, imag"
    ):
        answers(archive)


def test_an_archive_without_a_model_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="neither a serializedFile nor a modelFile"):
        answers(make_mar(tmp_path / "net.mar", {"my.py": HANDLER}, "my.py"))
