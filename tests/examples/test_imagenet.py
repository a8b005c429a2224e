from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from examples.imagenet import archive, efficientnet, legacy_pth
from PIL import Image

from forecastle.errors import BadArtifact
from forecastle.runtimes.mxnet import importer, params

View = tuple[int, tuple[int, ...], tuple[int, ...]]


def frozen(value: object) -> bytes:
    """A value's pickle without its frame, to be put in another one."""
    return pickle.dumps(value, 2)[2:-1]


def state_pickle(length: int, view: View) -> bytes:
    """What PyTorch writes for ``{"x": tensor}``, opcode by opcode, as PyTorch's classes are not here to be pickled."""
    fields = [frozen("storage"), b"ctorch\nFloatStorage\n", frozen("7"), frozen("cpu"), frozen(length), b"N"]
    storage = b"(" + b"".join(fields) + b"t"
    arguments = b"(" + storage + b"Q" + b"".join(map(frozen, view)) + frozen(False) + frozen({}) + b"t"
    return b"\x80\x02}" + frozen("x") + b"ctorch._utils\n_rebuild_tensor_v2\n" + arguments + b"Rs."


def pth(
    *, length: int = 6, view: View = (0, (2, 3), (1, 2)), declared: int = 6, state: bytes = b"", magic: bytes = b""
) -> bytes:
    """A legacy file that holds 0, 1, 2 … and one view of it."""
    return b"".join(
        [
            magic or pickle.dumps(legacy_pth.MAGIC, 2),
            pickle.dumps(legacy_pth.PROTOCOL, 2),
            pickle.dumps({"little_endian": True}, 2),
            state or state_pickle(declared, view),
            pickle.dumps(["7"], 2),
            struct.pack(f"<q{length}f", length, *range(length)),
        ]
    )


def read(folder: Path, data: bytes) -> dict[str, Any]:
    path = folder / "weights.pth"
    path.write_bytes(data)
    return legacy_pth.load(path)


def test_a_tensor_is_read_through_its_strides_into_c_order(tmp_path: Path) -> None:
    tensor = read(tmp_path, pth())["x"]
    assert tensor.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert tensor.flags.c_contiguous
    assert tensor.flags.writeable


@pytest.mark.parametrize(
    ("view", "expected"),
    [((5, (), ()), 5.0), ((2, (2,), (3,)), [2.0, 5.0]), ((6, (0, 3), (3, 1)), []), ((1, (3,), (0,)), [1.0, 1.0, 1.0])],
)
def test_scalars_offsets_empty_and_repeated_tensors_are_read(tmp_path: Path, view: View, expected: object) -> None:
    assert read(tmp_path, pth(view=view))["x"].tolist() == expected


@pytest.mark.parametrize(
    "view",
    [
        (0, (2, 3), (3, 2)),
        (1, (6,), (1,)),
        (-1, (2,), (1,)),
        (0, (2,), (-1,)),
        (0, (-2,), (1,)),
        (0, (2, 3), (1,)),
        (0, (10**12,), (0,)),
    ],
)
def test_a_tensor_that_leaves_its_storage_is_refused(tmp_path: Path, view: View) -> None:
    with pytest.raises(BadArtifact, match=r"weights\.pth"):
        read(tmp_path, pth(view=view))


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.command = f"touch {marker}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


def test_a_hostile_pickle_is_refused_by_the_name_it_asks_for_and_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "was_run"
    hostile = pickle.dumps(Hostile(marker), 2)
    for data in (pth(magic=hostile), pth(state=hostile)):
        with pytest.raises(BadArtifact, match=r"weights\.pth.*posix\.system"):
            read(tmp_path, data)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["builtins.eval", "builtins.getattr", "torch.load", "torch._utils._rebuild_parameter"])
def test_every_name_but_those_of_weights_is_refused(tmp_path: Path, name: str) -> None:
    module, _, attribute = name.rpartition(".")
    with pytest.raises(BadArtifact, match=name):
        read(tmp_path, pth(state=f"c{module}\n{attribute}\n.".encode()))


def test_a_file_cut_short_anywhere_is_refused_by_name(tmp_path: Path) -> None:
    whole = pth()
    for length in range(len(whole)):
        with pytest.raises(BadArtifact, match=r"weights\.pth"):
            read(tmp_path, whole[:length])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(pth(magic=pickle.dumps(1, 2)), id="another magic number"),
        pytest.param(pth(declared=5), id="a storage of another length"),
        pytest.param(pth(state=pickle.dumps({"x": 1}, 2)), id="an entry that is no tensor"),
        pytest.param(pth(state=pickle.dumps([1], 2)), id="a list"),
        pytest.param(b"PK\x03\x04", id="PyTorch's later format"),
    ],
)
def test_another_format_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadArtifact, match=r"weights\.pth"):
        read(tmp_path, data)


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    return legacy_pth.load(archive.weights())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imagenet") / "efficientnet-lite0.zip"
    archive.build(path)
    return path


def test_the_published_weights_are_read(state: dict[str, Any]) -> None:
    assert len(state) == 296
    assert state["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert state["_fc.weight"].shape == (1000, 1280)
    assert all(tensor.flags.c_contiguous for tensor in state.values())


def test_weights_of_another_network_are_refused(state: dict[str, Any]) -> None:
    with pytest.raises(KeyError, match=r"_fc\.bias"):
        efficientnet.build({name: tensor for name, tensor in state.items() if name != "_fc.bias"})
    with pytest.raises(ValueError, match="_se_reduce"):
        efficientnet.build({**state, "_se_reduce": np.zeros(1)})


def test_the_synset_names_a_thousand_classes_in_order() -> None:
    lines = archive.synset()
    assert len(set(lines)) == 1000
    assert lines[0] == "n01440764 tench, Tinca tinca"
    assert lines[-1] == "n15075141 toilet tissue, toilet paper, bathroom tissue"


def test_the_archive_is_the_same_byte_for_byte(built: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    archive.build(again)
    assert again.read_bytes() == built.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.digests", "again.zip"]


def test_the_archive_holds_what_mms_expects(built: Path) -> None:
    with zipfile.ZipFile(built) as opened:
        assert opened.testzip() is None
        assert set(opened.namelist()) == {
            "efficientnet-lite0-symbol.json",
            "efficientnet-lite0-0000.params",
            "signature.json",
            "synset.txt",
        }
        signature = json.loads(opened.read("signature.json"))
    assert signature["input"] == [{"data_name": "data", "data_shape": [0, 3, 224, 224]}]
    assert signature["input_type"] == "image/jpeg"


def test_an_archive_is_reused_only_while_it_is_whole(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zip"
    assert not archive.is_built(copy)
    copy.write_bytes(built.read_bytes())
    assert not archive.is_built(copy)
    copy.with_suffix(".digests").write_bytes(built.with_suffix(".digests").read_bytes())
    assert archive.is_built(copy)
    copy.write_bytes(built.read_bytes()[:-1])
    assert not archive.is_built(copy)


def test_the_network_sees_a_cat(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built) as opened:
        opened.extractall(tmp_path)
    weights = params.load(tmp_path / "efficientnet-lite0-0000.params")
    model = importer.to_onnx(tmp_path / "efficientnet-lite0-symbol.json", weights, {"data": efficientnet.INPUT_SHAPE})
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    picture = tmp_path / "cat.jpg"
    archive.cat(picture)
    with Image.open(picture) as opened_picture:
        pixels = np.asarray(opened_picture.resize((224, 224)), np.float32)
    (probabilities,) = np.asarray(session.run(None, {"data": pixels.transpose(2, 0, 1)[None]})[0])
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    synset = archive.synset()
    leading = [synset[index] for index in np.argsort(-probabilities)[:3]]
    assert {line.partition(" ")[2] for line in leading} == {"tiger cat", "Egyptian cat", "tabby, tabby cat"}
