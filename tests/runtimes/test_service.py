from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from forecastle.messages import Part
from forecastle.models.services import CLASSES
from runtimes import networks
from runtimes.archives import colours, doubling, jpeg, two_pictures
from runtimes.served import IMPORTS, Served, number, picture


def test_a_class_of_one_s_own_goes_from_the_picture_to_the_answer(tmp_path: Path) -> None:
    served = Served(
        tmp_path,
        colours(tmp_path / "colours.zip"),
        """
        class Mine(MXNetBaseService):
            def _preprocess(self, data):
                height, width = self.signature["inputs"][0]["data_shape"][2:]
                return [image.transform_shape(image.resize(image.read(data[0]), width, height))]

            def _postprocess(self, data, method="predict"):
                return [ndarray.top_probability(output, self.labels, top=2) for output in data]
        """,
    )
    (best,) = served.ask(picture())
    assert [entry["class"] for entry in best] == ["blue", "red"]
    assert served.info.runtime == "service"
    assert not served.info.together
    assert served.info.signature is not None
    assert [tensor.name for tensor in served.info.signature.inputs] == ["data"]


def test_the_bundled_services_are_the_runtime_s_own_and_batch(tmp_path: Path) -> None:
    archive = colours(tmp_path / "colours.zip")
    requests = [[picture(colour)] for colour in ("red", "lime", "blue", "red")]
    plain = Served(tmp_path, archive)
    for name in ("MXNetVisionService", "MXNetBaseService"):
        bundled = Served(tmp_path, archive, f"{CLASSES}:{name}")
        assert bundled.info == plain.info
        assert bundled.info.together
        assert bundled.answers(*requests) == plain.answers(*requests)


def test_the_vision_service_alone_answers_as_it_is_served(tmp_path: Path) -> None:
    archive = colours(tmp_path / "colours.zip")
    served = Served(tmp_path, archive, "class Mine(MXNetVisionService):\n    pass\n")
    assert served.info.runtime == "service"
    assert served.ask(picture("lime")) == Served(tmp_path, archive).ask(picture("lime"))


def test_a_service_with_two_inputs_is_given_them_in_the_signature_s_order(tmp_path: Path) -> None:
    served = Served(
        tmp_path,
        two_pictures(tmp_path / "test.zip"),
        """
        class Mine(MXNetVisionService):
            def _preprocess(self, data):
                self.first = image.read(data[0])[0, 0].argmax()
                return super()._preprocess(data)
            def _postprocess(self, data):
                return [int(self.first), len(super()._postprocess(data)[0])]
        """,
    )
    assert served.ask(picture("blue", "input1"), picture("red", "input0")) == [0, 5]
    assert served.ask(picture("blue", "data1"), picture("red", "data2")) == [2, 5]


def test_names_without_an_underscore_are_the_same_steps(tmp_path: Path) -> None:
    served = Served(
        tmp_path,
        doubling(tmp_path / "double.zip"),
        """
        class Mine(MXNetBaseService):
            def preprocess(self, data):
                return [np.array(data[0]) + 1]
            def inference(self, data):
                return self._inference(data)
            def postprocess(self, data):
                return data[0].asnumpy() + 0.5
        """,
    )
    assert served.ask(number("[[1, 2, 3]]")) == [[4.5, 6.5, 8.5]]


def test_a_class_may_answer_in_one_step(tmp_path: Path) -> None:
    archive = doubling(tmp_path / "double.zip")
    served = Served(
        tmp_path,
        archive,
        """
        class Mine(MXNetBaseService):
            def inference(self, data):
                return {"before": data, "after": super().inference(data)}
        """,
    )
    assert served.ask(number("[[1, 2, 3]]")) == {"before": [[[1, 2, 3]]], "after": [[[2, 4, 6]]]}


def test_a_service_needs_none_of_our_inference(tmp_path: Path) -> None:
    served = Served(
        tmp_path,
        doubling(tmp_path / "double.zip", words_txt="a b"),
        """
        from pathlib import Path

        class Mine(SingleNodeService):
            def __init__(self, model_name, model_dir, manifest, gpu=None):
                super().__init__(model_name, model_dir, manifest, gpu)
                self.words = (Path(model_dir) / "words.txt").read_text().split()
            def _inference(self, data):
                return [self.model_name, self.manifest["Model"]["Model-Name"], self.words, data]
        """,
    )
    assert served.ask(number("{'a': (1, None)}")) == ["double", "double", ["a", "b"], [{"a": [1, None]}]]


@pytest.mark.parametrize(
    "constructor",
    [
        "self, path, synset=None, ctx=None): super().__init__(path, synset, ctx)",
        "self, path): super().__init__(path)",
        "self, path, ctx='cpu'): super().__init__(path, ctx=ctx)",
        "self, model_name, model_dir, manifest, gpu=None): super().__init__(model_name, model_dir, manifest, gpu)",
        "self, model_name, model_dir, manifest): super().__init__(model_name, model_dir, manifest=manifest)",
        "self, *args, **kwargs): super().__init__(*args, **kwargs)",
        "self, a, b, c, d): super().__init__(model_name=a, model_dir=b, manifest=c, gpu=d)",
    ],
)
def test_the_constructors_of_every_version_are_called_as_they_were(tmp_path: Path, constructor: str) -> None:
    archive = colours(tmp_path / "colours.zip")
    served = Served(tmp_path, archive, f"class Mine(MXNetVisionService):\n    def __init__({constructor}\n")
    ((best, *_),) = served.ask(picture("lime"))
    assert best["class"] == "green"


def test_a_network_that_a_program_made_is_served(tmp_path: Path) -> None:
    served = Served(
        tmp_path,
        colours(tmp_path / "colours.zip"),
        """
        class Mine(GluonVisionService):
            def __init__(self, model_name, model_dir, manifest, gpu=None):
                net = lambda pixels: np.concatenate([pixels.mean(axis=(2, 3)), np.full((1, 3), -9.0)], axis=1)
                super().__init__(model_name, model_dir, manifest, net, gpu)
        """,
    )
    (best,) = served.ask(picture("red"))
    assert best[0]["class"] == "red"
    assert sum(entry["probability"] for entry in best) == pytest.approx(1, abs=1e-3)
    scores = (np.array([254, 0, 0]) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert best[0]["probability"] == pytest.approx(np.exp(scores[0]) / np.exp([*scores, -9, -9, -9]).sum(), abs=0.01)


def test_the_gluon_service_without_a_network_runs_the_symbol(tmp_path: Path) -> None:
    archive = colours(tmp_path / "colours.zip", synset="")
    served = Served(tmp_path, archive, f"{CLASSES}:GluonVisionService")
    ((scores,),) = served.ask(picture())
    assert len(scores) == 6
    assert sum(scores) == pytest.approx(1)


def test_a_service_says_whether_it_is_well(tmp_path: Path) -> None:
    archive = colours(tmp_path / "colours.zip")
    assert Served(tmp_path, archive, "class Mine(MXNetBaseService):\n    pass\n").hooks.ping is None
    served = Served(tmp_path, archive, "class Mine(MXNetBaseService):\n    def ping(self): return ''\n")
    assert served.hooks.ping is not None
    assert not served.hooks.ping()


def test_a_service_serves_an_onnx_file_too(tmp_path: Path) -> None:
    networks.two_inputs(tmp_path / "net.onnx")
    (tmp_path / "other.onnx").write_bytes((tmp_path / "net.onnx").read_bytes())
    served = Served(
        tmp_path,
        tmp_path / "net.onnx",
        "class Mine(MXNetBaseService):\n    def _postprocess(self, data): return float(data[0].sum())\n",
    )
    assert served.ask(Part("", "application/json", b'{"a": [1, 2], "b": [0.5, 0.5]}')) == 4.0


def test_the_archive_s_own_service_is_used_and_another_goes_before_it(tmp_path: Path) -> None:
    mine = IMPORTS + "class Mine(MXNetBaseService):\n    def _postprocess(self, data): return 'packed'\n"
    manifest = json.dumps({"Model": {"Service": "mine.py"}})
    archive = colours(tmp_path / "colours.model", mine_py=mine, MANIFEST_json=manifest)
    assert Served(tmp_path, archive).ask(picture()) == "packed"
    other = "class Other(MXNetBaseService):\n    def _postprocess(self, data): return self.manifest\n"
    assert Served(tmp_path, archive, other).ask(picture()) == {"Model": {"Service": "mine.py"}}


def test_an_answer_may_be_anything_that_json_can_hold(tmp_path: Path) -> None:
    archive = doubling(tmp_path / "double.zip")
    for value, expected in (
        ("None", None),
        ("{np.float32(0.5): 'half', np.int64(2): [np.arange(2)]}", {"0.5": "half", "2": [[0, 1]]}),
        ("(1, {'a': data})", [1, {"a": [[[2, 4, 6]]]}]),
    ):
        served = Served(
            tmp_path, archive, f"class Mine(MXNetBaseService):\n    def _postprocess(self, data): return {value}\n"
        )
        assert served.ask(number("[1, 2, 3]")) == expected


def test_a_picture_s_bytes_go_out_as_the_signature_says(tmp_path: Path) -> None:
    served = Served(
        tmp_path,
        colours(tmp_path / "colours.zip"),
        """
        class Mine(MXNetBaseService):
            signature = {
                "inputs": [{"data_name": "data", "data_shape": [1, 3, 8, 8]}],
                "input_type": "image/jpeg", "outputs": [], "output_type": "image/jpeg",
            }
            def inference(self, data):
                return data[0] if len(data[0]) > 700 else [image.write(image.read(data[0]), dim_order="HWC")]
        """,
    )
    large = Part("data", "", jpeg("red", (300, 300)))
    small = Part("data", "", jpeg("red", (8, 8)))
    answers = served.answers([large], [small])
    assert answers[0] == (large.data, "image/jpeg")
    assert not isinstance(answers[1], Exception)
    assert answers[1][1] == "application/json"


def test_a_picture_may_come_as_base64_text(tmp_path: Path) -> None:
    served = Served(tmp_path, colours(tmp_path / "c.zip"), "class Mine(MXNetVisionService):\n    pass\n")
    text = Part("data", "", msgspec.json.encode(jpeg("lime")).strip(b'"'))
    ((best, *_),) = served.ask(text)
    assert best["class"] == "green"
