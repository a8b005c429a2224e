from __future__ import annotations

from pathlib import Path

import pytest

from forecastle.models.artifact import Artifact
from forecastle.models.engines import extra, needs_mxnet

NOOP = "def handle(data, context): ..."


def handled(folder: Path, code: str, handler: str = "service:handle") -> Artifact:
    (folder / "service.py").write_text(code)
    return Artifact("mar archive", "handler", str(folder), "a.mar", service=handler)


@pytest.mark.parametrize(
    ("code", "handler", "wanted"),
    [
        (NOOP, "service:handle", "handler"),
        ("from ts.utils.util import PredictionException", "service", "handler"),
        ("import torch.nn", "service", "torch"),
        ("from ts.torch_handler.base_handler import BaseHandler", "service", "torch"),
        (NOOP, "image_classifier", "torch"),
    ],
)
def test_a_handler_needs_pytorch_where_it_says_so(tmp_path: Path, code: str, handler: str, wanted: str) -> None:
    assert extra(handled(tmp_path, code, handler)) == wanted


def test_any_other_artifact_needs_what_its_runtime_does() -> None:
    assert extra(Artifact("onnx", "onnx", "/m.onnx", "m.onnx")) == "onnx"


def test_a_handler_that_imports_mxnet_needs_it(tmp_path: Path) -> None:
    assert needs_mxnet(handled(tmp_path, "import mxnet as mx")) == "service.py imports mxnet"
    assert needs_mxnet(handled(tmp_path, NOOP)) == ""
