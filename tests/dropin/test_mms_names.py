from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from forecastle.errors import BadArtifact
from mms.mxnet_model_service import MXNetBaseService
from mms.mxnet_vision_service import MXNetVisionService
from runtimes.archives import colours, jpeg, two_pictures

SERVICES = {
    "mms.model_service": ("ModelService", "MultiNodesService", "SingleNodeService"),
    "mms.model_service.model_service": ("ModelService", "SingleNodeService"),
    "mms.mxnet_model_service": ("MXNetBaseService", "check_input_shape"),
    "mms.model_service.mxnet_model_service": (
        *("MXNetBaseService", "GluonImperativeBaseService", "SingleNodeService", "check_input_shape"),
    ),
    "mms.mxnet_vision_service": ("MXNetVisionService",),
    "mms.model_service.mxnet_vision_service": ("MXNetVisionService",),
    "mms.model_service.gluon_vision_service": ("GluonVisionService",),
}
FUNCTIONS = {
    "image": ("read", "write", "resize", "fixed_crop", "color_normalize", "transform_shape"),
    "nlp": ("encode_sentences", "pad_sentence"),
    "ndarray": ("top_probability",),
}


HANDLERS = {
    "mms.service": ("PredictionException",),
    "mms.context": ("Context", "RequestProcessor"),
    "ts.utils.util": ("PredictionException",),
    "ts.context": ("Context", "RequestProcessor"),
    "ts.torch_handler.base_handler": ("BaseHandler",),
    "ts.torch_handler.vision_handler": ("VisionHandler",),
    "ts.torch_handler.image_classifier": ("ImageClassifier",),
}


@pytest.mark.parametrize("module", HANDLERS)
def test_what_handlers_import_is_there_in_both_packages(module: str) -> None:
    for name in HANDLERS[module]:
        found = getattr(importlib.import_module(module), name)
        assert found.__module__.startswith("forecastle.runtimes.handler.")


@pytest.mark.parametrize("module", SERVICES)
def test_services_are_there_in_both_spellings(module: str) -> None:
    classes = importlib.import_module("forecastle.runtimes.service.classes")
    for name in SERVICES[module]:
        found = getattr(importlib.import_module(module), name)
        assert found is getattr(classes, name, found)
        assert found.__module__.startswith("forecastle.runtimes.service.")


@pytest.mark.parametrize("package", ["mms.mxnet_utils", "mms.utils.mxnet"])
def test_functions_are_there_in_both_spellings(package: str) -> None:
    for module, names in FUNCTIONS.items():
        imported = importlib.import_module(f"{package}.{module}")
        of_package = getattr(importlib.import_module(package), module)
        ours = importlib.import_module(f"forecastle.runtimes.service.{module}")
        for name in names:
            assert getattr(imported, name) is getattr(of_package, name) is getattr(ours, name)


def test_the_first_version_s_classes_of_functions_are_there() -> None:
    utils = importlib.import_module("mms.utils.mxnet_utils")
    for name, module in (("Image", "image"), ("NLP", "nlp"), ("NDArray", "ndarray")):
        for function in FUNCTIONS[module]:
            ours = importlib.import_module(f"forecastle.runtimes.service.{module}")
            assert getattr(getattr(utils, name), function) is getattr(ours, function)


def test_the_package_alone_needs_no_numpy() -> None:
    code = "import mms, sys; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_two_pictures_are_classified_whatever_their_sizes(tmp_path: Path) -> None:
    service = MXNetVisionService(str(two_pictures(tmp_path / "test.zip")))
    assert len(service.labels) == 10
    for sizes in (((64, 64), (32, 32)), ((96, 96), (24, 24))):
        best, *others = service.inference([jpeg("teal", size) for size in sizes])
        assert others == []
        assert len(best) == 5
        assert set(best[0]) == {"class", "probability"}
    assert [p.name for p in tmp_path.iterdir()] == ["test.zip"]


def test_a_service_is_made_of_an_archive_or_its_directory_with_labels_or_without(tmp_path: Path) -> None:
    archive = colours(tmp_path / "colours.zip", synset="")
    assert not hasattr(MXNetBaseService(str(archive)), "labels")
    ((scores,),) = MXNetVisionService(str(archive)).inference([jpeg("red")])
    assert len(scores) == 6
    names = tmp_path / "names.txt"
    names.write_text("r\ng\nb\nx\ny\nz\n")
    service = MXNetVisionService(str(archive), str(names), ctx="cpu")
    assert service.labels == ["r", "g", "b", "x", "y", "z"]
    assert (service.model_name, service.ctx) == ("colours", "cpu")
    assert service.inference([jpeg("red")])[0][0]["class"] == "r"
    with pytest.raises(BadArtifact, match=r"gone\.txt cannot be read"):
        MXNetVisionService(str(archive), "gone.txt")


def test_a_service_is_well_and_knows_its_signature(tmp_path: Path) -> None:
    service = MXNetBaseService(str(colours(tmp_path / "colours.zip")))
    assert service.ping()
    assert service.signature == {
        "inputs": [{"data_name": "data", "data_shape": [1, 3, 8, 8]}],
        "input_type": "image/jpeg",
        "outputs": [{"data_name": "softmax", "data_shape": [1, 6]}],
        "output_type": "application/json",
    }
