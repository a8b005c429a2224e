from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadOutput, ForecastleError, LoadFailed
from forecastle.messages import Part
from forecastle.runtimes.service.classes import MXNetBaseService, MXNetVisionService, check_input_shape
from forecastle.runtimes.service.find import find_class
from runtimes.archives import colours, doubling, jpeg, two_pictures
from runtimes.served import IMPORTS, Served, number, picture

VISION = """
class Mine(MXNetVisionService):
    def _preprocess(self, data):
        return image.resize(image.read(data), 8, 8)
"""
TENSORS = """
class Mine(MXNetBaseService):
    def _postprocess(self, data):
        return data[0]
"""


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([Part("input0", "image/jpeg", b"hello")], "the input 'input0' is no picture; expected one of JPEG"),
        ([Part("data", "image/jpeg", b"\xff\xd8\xff\xe0 and then nothing")], "the picture"),
        ([Part("data", "image/jpeg", jpeg()[:-300])], "the picture is broken"),
        ([Part("data", "image/jpeg", b"")], r"the input 'data' is empty; expected 'data' \(or 'input0'\)"),
        ([picture(name="image")], r"no input for the field 'image'; expected 'data' \(or 'input0'\)"),
        ([picture(), picture(name="data")], "the input 'data' was sent twice; the second time as 'data'"),
    ],
)
def test_a_wrong_picture_is_the_client_s_fault(tmp_path: Path, parts: list[Part], message: str) -> None:
    kind, said = Served(tmp_path, colours(tmp_path / "c.zip"), VISION).ask(*parts)
    assert kind == "BadInput"
    assert re.search(message, said), said


def test_a_missing_input_is_named_with_all_that_are_expected(tmp_path: Path) -> None:
    served = Served(tmp_path, two_pictures(tmp_path / "test.zip"), "class Mine(MXNetVisionService):\n    pass\n")
    kind, said = served.ask(picture(name="input1"))
    assert kind == "BadInput"
    assert said == "the input 'data1' is missing; expected 'data1' (or 'input0') and 'data2' (or 'input1')"
    assert served.ask(Part("", "image/jpeg", jpeg())) == (kind, said.replace("'data1' is", "'data2' is"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2", "the input 'data'.*not JSON"),
        ("[[1, 2]]", r"data has shape \(1, 2\); expected \(any, 3\)"),
        ("[['a', 'b', 'c']]", r"data\[0\]\[0\] is 'a'; expected a number"),
        ("None", "data is null; expected a number"),
    ],
)
def test_a_wrong_tensor_is_the_client_s_fault(tmp_path: Path, text: str, message: str) -> None:
    kind, said = Served(tmp_path, doubling(tmp_path / "d.zip"), TENSORS).ask(number(text, "data"))
    assert kind == "BadInput"
    assert re.search(message, said), said


def test_a_first_step_that_misses_something_in_the_input_blames_the_client(tmp_path: Path) -> None:
    service = "class Mine(MXNetBaseService):\n    def _preprocess(self, data): return [data[0]['review']]\n"
    served = Served(tmp_path, doubling(tmp_path / "d.zip"), service)
    assert served.ask(number("{}")) == ("BadInput", "the input could not be read: KeyError: 'review'")


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("_preprocess(self, data): return 1 / 0", "preprocess of the service Mine raised ZeroDivisionError: division"),
        ("_inference(self, data): raise RuntimeError", "inference of the service Mine raised RuntimeError$"),
        ("_postprocess(self, data): return self.nonsense", "postprocess of the service Mine raised AttributeError: "),
        ("_postprocess(self, data): raise ValueError('no')", "postprocess of the service Mine raised ValueError: no"),
    ],
)
def test_a_step_that_fails_is_named_and_its_traceback_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, method: str, message: str
) -> None:
    served = Served(tmp_path, doubling(tmp_path / "d.zip"), f"class Mine(MXNetBaseService):\n    def {method}\n")
    with caplog.at_level(logging.ERROR):
        kind, said = served.ask(number("[1, 2, 3]"))
    assert kind == "PredictionFailed"
    assert re.search(message, said), said
    assert "request 0" in caplog.text
    assert "my.py" in caplog.text


def test_one_request_s_fault_is_no_other_s(tmp_path: Path) -> None:
    served = Served(tmp_path, doubling(tmp_path / "d.zip"), TENSORS)
    answers = served.answers(*([number(text)] for text in ("[1, 2, 3]", "[1]", "nonsense", "[[4, 5, 6]]")))
    assert [isinstance(answer, tuple) for answer in answers] == [True, False, False, True]


@pytest.mark.parametrize(
    ("method", "kind", "message"),
    [
        ("_preprocess(self, data): return []", "BadOutput", "made 0 inputs; expected 1, as the signature has"),
        ("_preprocess(self, data): return data * 2", "BadOutput", "made 2 inputs; expected 1"),
        ("_preprocess(self, data): return None", "BadOutput", "made NoneType of its inputs|does not fit the model"),
        ("_preprocess(self, data): return np.zeros((9, 9, 3))", "BadOutput", r"data has shape \(9, 9, 3\); expected"),
        ("_inference(self, data): return []", "BadOutput", "made 0 outputs; expected 1, as the signature has"),
        ("_inference(self, data): return np.zeros(6)", "BadOutput", "made ndarray of its outputs; expected a list"),
        ("_postprocess(self, data): return [ndarray.top_probability(data[0][:, :2], self.labels)]", "BadOutput",
         "has not one score for each of the 6 labels"),
        ("_postprocess(self, data): return object()", "BadOutput", "cannot be written as application/json"),
    ],
)  # fmt: skip
def test_a_step_that_gives_the_wrong_count_or_shape_is_the_service_s_fault(
    tmp_path: Path, method: str, kind: str, message: str
) -> None:
    service = f"class Mine(MXNetVisionService):\n    def {method}\n"
    found, said = Served(tmp_path, colours(tmp_path / "c.zip"), service).ask(picture())
    assert found == kind
    assert re.search(message, said), said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "my.py has no service class; expected one derived from MXNetBaseService"),
        ("class A(MXNetBaseService): pass\nclass B(MXNetBaseService): pass",
         r"my.py has 2 service classes \(A, B\); say which: my.py:A"),
        ("import mxnet as mx\nclass A(MXNetBaseService): pass",
         "the service my.py imports mxnet, which is not installed and which nothing here needs: use numpy"),
        ("from mxnet.gluon import nn", "the service my.py imports mxnet"),
    ],
)  # fmt: skip
def test_a_module_that_cannot_be_a_service_is_refused(tmp_path: Path, text: str, message: str) -> None:
    archive = doubling(tmp_path / "d.zip")
    with pytest.raises(LoadFailed, match=message):
        Served(tmp_path, archive, f"{text}\n")


def test_what_a_module_raises_is_the_reason(tmp_path: Path) -> None:
    for text, error, message in (
        ("import wrong_package\n", ModuleNotFoundError, "No module named 'wrong_package'"),
        ("class Mine(MXNetBaseService):\n    def __init__(self, *a): raise OSError('no words')\n", OSError, "no words"),
        ("class Mine(SingleNodeService):\n    pass\n", LoadFailed, "has no service class"),
    ):
        with pytest.raises(error, match=message):
            Served(tmp_path, doubling(tmp_path / "d.zip"), text)


def test_the_class_is_the_one_that_is_named_or_that_no_other_builds_on(tmp_path: Path) -> None:
    file = tmp_path / "family.py"
    file.write_text(IMPORTS + "class A(MXNetBaseService): pass\nclass B(A): pass\n")
    assert find_class(str(file)).__name__ == "B"
    assert find_class(f"{file}:A").__name__ == "A"
    assert find_class(f"{file}:MXNetVisionService") is MXNetVisionService
    for name in ("C", "image"):
        with pytest.raises(LoadFailed, match=f"family.py has no service class '{name}'; it has MXNetBaseService, "):
            find_class(f"{file}:{name}")


def test_a_file_that_is_called_like_a_module_takes_nobody_s_place(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(IMPORTS + "class Mine(MXNetBaseService): pass\n")
    assert find_class(str(tmp_path / "json.py")).__module__ == "service_json"
    with pytest.raises(LoadFailed, match=r"the service file gone\.py is not there any more"):
        find_class(str(tmp_path / "gone.py"))


def test_a_service_by_hand_says_what_it_cannot_be_made_of(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def predict_fn(data, model): return data\n")
    with pytest.raises(LoadFailed, match="is a hook file; a service class needs a model with a signature"):
        MXNetBaseService(str(tmp_path / "hooks.py"))
    with pytest.raises(ForecastleError, match="there is no file or directory"):
        MXNetBaseService(str(tmp_path / "gone.zip"))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.zeros((1, 3)), "made ndarray of its inputs; expected a list of 1"),
        ([np.zeros((1, 3))] * 2, "made 2 inputs; expected 1"),
        ([[1, 2, 3]], "the input 'data' is list; expected an array"),
        ([np.zeros(3)], r"the input 'data' has the shape \(3,\); expected \[1, 3, 0\]"),
        ([np.zeros((1, 4, 5))], r"the input 'data' has the shape \(1, 4, 5\)"),
    ],
)
def test_the_check_of_shapes_names_what_does_not_fit(inputs: Any, message: str) -> None:
    signature = {"inputs": [{"data_name": "data", "data_shape": [1, 3, 0]}]}
    check_input_shape([np.zeros((7, 3, 9))], signature)
    with pytest.raises(BadOutput, match=message):
        check_input_shape(inputs, signature)


def test_a_file_may_import_the_service_from_another_one(tmp_path: Path) -> None:
    (tmp_path / "written_elsewhere.py").write_text(IMPORTS + "class Mine(MXNetBaseService): pass\n")
    (tmp_path / "entry.py").write_text(IMPORTS + "from written_elsewhere import Mine\n")
    assert find_class(str(tmp_path / "entry.py")).__name__ == "Mine"
