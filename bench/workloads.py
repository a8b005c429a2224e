"""What is asked: three workloads, each a model, a body and the answer that must come back."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from examples.imagenet import archive
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from forecastle.models.artifact import Artifact, open_artifact

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
FEATURES = 30


@dataclass(frozen=True)
class Workload:
    """One model to serve and one request to send to it over and over."""

    name: str
    source: Path
    body: bytes
    content_type: str
    replicas: int = 1

    @property
    def path(self) -> str:
        """The path of its predictions."""
        return f"/{self.name}/predict"

    @property
    def artifact(self) -> Artifact:
        """The model as the server finds it."""
        return open_artifact(str(self.source), cache=CACHE)


def build() -> list[Workload]:
    """Make the models that are not there yet, and return the workloads."""
    CACHE.mkdir(parents=True, exist_ok=True)
    row = [round(float(value), 4) for value in np.random.default_rng(1).normal(size=FEATURES)]
    return [
        # The sum of a JSON list, by hooks; a logistic regression of 30 features, in ONNX; EfficientNet-lite0, from a
        # JPEG to the five best classes.
        Workload("W1", ROOT / "bench" / "models" / "total.py", b"[1,2,3,4]", "application/json"),
        Workload("W2", _regression(), json.dumps(row).encode(), "application/json"),
        Workload("W3", _imagenet(), _picture(), "image/jpeg", replicas=2),
    ]


def _regression() -> Path:
    """Standardise and classify, with fixed weights: ``x`` (rows, 30) to ``label`` (rows) and ``probabilities``."""
    path = CACHE / "regression.onnx"
    random = np.random.default_rng(0)
    weights = {
        "mean": random.normal(size=FEATURES),
        "scale": random.uniform(0.5, 2, size=FEATURES),
        "weights": random.normal(size=(FEATURES, 2)),
        "bias": random.normal(size=2),
    }
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "scale"], ["standard"]),
        helper.make_node("Gemm", ["standard", "weights", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "regression",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", FEATURES])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["rows"]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["rows", 2]),
        ],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def _imagenet() -> Path:
    path = ROOT / ".cache" / "demo" / f"{archive.NAME}.zip"
    if not archive.is_built(path):
        archive.build(path)
    return path


def _picture() -> bytes:
    """Return the cat at the size the network takes, so that what is measured is the network more than the resizing."""
    path = CACHE / "cat.jpg"
    archive.cat(path)
    buffer = io.BytesIO()
    with Image.open(path) as picture:
        picture.resize((224, 224)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
