from __future__ import annotations

import json
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import joblib
import lightgbm
import msgspec
import numpy as np
import pytest
import skops.io
import xgboost
from onnx import helper
from sklearn.linear_model import LogisticRegression

from cli.process import SHIPPING
from forecastle.cluster.export import Exported, export
from forecastle.errors import BadArtifact, LoadFailed, StartError, UsageError
from forecastle.hooks.resolve import Hooks
from forecastle.models.artifact import open_artifact
from forecastle.models.export import Order
from forecastle.models.inspection import inspect
from forecastle.models.signature import JPEG, Tensor, parse_signature
from forecastle.replica.loading import load_model
from models.builders import make_directory, make_zip
from runtimes import networks
from runtimes.archives import colours, doubling, node, signature, write
from runtimes.mxnet.test_native import smooth
from runtimes.test_tensor import ask, raw
from side import CACHE

SERVICE = "from mms.mxnet_vision_service import MXNetVisionService\nclass Mine(MXNetVisionService): pass\n"


def made(source: Path | str, cache: Path | None = None, **options: Any) -> Exported:
    folder = Path(str(source)).parent
    order = Order("net", str(source), options.pop("target", folder / "out" / "net.zip"), **options)
    return export(order, cache=cache or folder / "cache")


def loaded(exported: Exported) -> Hooks:
    return load_model(open_artifact(str(exported.path), cache=exported.path.parent / "cache"))[0]


def member(exported: Exported, name: str) -> bytes:
    with zipfile.ZipFile(exported.path) as archive:
        return archive.read(name)


def unpacked(archive: Path) -> Path:
    folder = archive.with_suffix("")
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    return folder


# MMS archives


def test_a_folder_and_its_archive_make_the_same_archive_whose_files_are_told(tmp_path: Path) -> None:
    source = colours(tmp_path / "colours.zip")
    first = made(source)
    second = made(unpacked(source), target=tmp_path / "again.zip")
    assert first.path.read_bytes() == second.path.read_bytes()
    assert list(first.entries) == ["colours-0000.params", "colours-symbol.json", "signature.json", "synset.txt"]
    _, found = inspect(str(first.path), cache=tmp_path / "cache")
    assert found.faults == []
    assert found.kind == "mms archive"


def test_dates_and_permissions_of_files_change_nothing(tmp_path: Path) -> None:
    folder = unpacked(colours(tmp_path / "colours.zip"))
    first = made(folder)
    for path in folder.iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o600)
    assert made(folder, target=tmp_path / "again.zip").path.read_bytes() == first.path.read_bytes()


def test_an_export_of_an_export_is_the_same_archive(tmp_path: Path) -> None:
    first = made(colours(tmp_path / "colours.zip"))
    assert made(first.path, target=tmp_path / "again.zip").path.read_bytes() == first.path.read_bytes()


def test_the_manifest_has_mms_s_fields_and_keeps_what_only_it_said(tmp_path: Path) -> None:
    before = {
        "License": "Apache 2.0",
        "Created-By": {"Author": "A"},
        "Model": {"Service": "mine.py", "Model-Name": "old"},
        "Engine": {"MXNet": 0.12},
    }
    exported = made(colours(tmp_path / "colours.zip", mine_py=SERVICE, MANIFEST_json=json.dumps(before)))
    manifest = json.loads(member(exported, "MANIFEST.json"))
    assert manifest.pop("Files").keys() == exported.entries.keys() == {*exported.entries, "mine.py"}
    assert manifest == {
        "Model-Archive-Version": 0.2,
        "Model-Server": 0.4,
        "Model-Archive-Description": "net",
        "License": "Apache 2.0",
        "Created-By": {"Author": "A"},
        "Engine": {"MXNet": 0.12},
        "Model": {
            "Description": "net",
            "Model-Format": "MXNet-Symbolic",
            "Model-Name": "net",
            "Parameters": "colours-0000.params",
            "Service": "mine.py",
            "Signature": "signature.json",
            "Symbol": "colours-symbol.json",
        },
    }


def test_files_that_are_given_replace_the_source_s_which_stays_as_it_was(tmp_path: Path) -> None:
    folder = unpacked(colours(tmp_path / "colours.zip"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    mine = tmp_path / "mine.json"
    document = {"input": [{"data_name": "data", "data_shape": [0, 3, 8, 8]}], "input_type": "image/jpeg"}
    mine.write_text(json.dumps(document))
    (tmp_path / "words").write_text("a\nb\nc\nd\ne\nf\n")
    exported = made(folder, signature=mine, synset=tmp_path / "words")
    written = parse_signature(member(exported, "signature.json"), "")
    assert written.outputs == (Tensor("softmax_output", (None, 6)),)
    assert member(exported, "synset.txt") == b"a\nb\nc\nd\ne\nf\n"
    assert [note.partition(" ")[2][:10] for note in exported.notes] == ["says input", "lists no o"]
    assert json.loads(mine.read_text()) == document
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_service_that_is_given_is_the_archive_s_beside_another_one(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(SERVICE.replace("Mine", "Other"))
    exported = made(colours(tmp_path / "colours.zip", mine_py=SERVICE), service=tmp_path / "other.py")
    assert Path(open_artifact(str(exported.path), cache=tmp_path).service).name == "other.py"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": [0, 3, 8, 9]}, "the node 'fc' .* its weight has 192 columns, where 216 are expected"),
        ({"image": [0, 3, 8, 8]}, r"has no input 'image'"),
        ({"data": [0, 3, 8, 8], "other": [0, 2]}, r"has no input 'other'"),
    ],
)
def test_a_signature_that_the_network_contradicts_is_refused(
    tmp_path: Path, change: dict[str, list[int]], message: str
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(signature(change, {"softmax": [0, 6]}, "image/jpeg")))
    with pytest.raises(BadArtifact, match=message):
        made(colours(tmp_path / "colours.zip"), signature=tmp_path / "s.json")
    assert not list((tmp_path / "out").iterdir())


def test_an_output_of_another_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(signature({"data": [0, 3, 8, 8]}, {"softmax": [0, 100]}, "image/jpeg")))
    with pytest.raises(BadArtifact, match=r"'softmax' has the shape \[0, 100\], and the symbol computes \[0, 6\]"):
        made(colours(tmp_path / "colours.zip"), signature=tmp_path / "s.json")


def test_a_signature_in_the_manual_s_quotes_is_explained_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{ 'input' : [ ] }")
    with pytest.raises(BadArtifact, match=r"mine\.json is not JSON: .* single quotes .* replace every ' by \""):
        made(colours(tmp_path / "colours.zip"), signature=tmp_path / "mine.json")


@pytest.mark.parametrize("labels", ["a\nb\n", "1\n2\n3\n4\n5\n6\n7\n"])
def test_labels_of_another_number_are_refused_unless_a_service_uses_them(tmp_path: Path, labels: str) -> None:
    with pytest.raises(BadArtifact, match=r"synset\.txt of .* labels, and the output 'softmax' has 6"):
        made(colours(tmp_path / "colours.zip", synset=labels))
    made(colours(tmp_path / "served.zip", synset=labels, mine_py=SERVICE))


def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    folder = unpacked(colours(tmp_path / "colours.zip"))
    (folder / "colours-0001.params").touch()
    with pytest.raises(BadArtifact, match=r"holds 2 parameter files \(colours-0000\.params, colours-0001\.params\)"):
        made(folder)
    (folder / "colours-0001.params").unlink()
    (folder / "colours-symbol.json").rename(folder / "other-symbol.json")
    with pytest.raises(BadArtifact, match="their prefixes are 'other' and 'colours'"):
        made(folder)
    (folder / "other-symbol.json").unlink()
    with pytest.raises(BadArtifact, match="holds no symbol file"):
        made(folder)


def test_a_signature_is_derived_or_made_of_shapes(tmp_path: Path) -> None:
    nodes = [
        node("null", "data"),
        node("null", "w"),
        node("FullyConnected", "fc", 0, 1, num_hidden=2, no_bias=True),
    ]
    source = write(tmp_path / "dense.zip", nodes, {"w": np.ones((2, 5), np.float32)}, {})
    folder = unpacked(source)
    (folder / "signature.json").unlink()
    derived = made(folder)
    assert derived.signature == parse_signature(member(derived, "signature.json"), "")
    assert derived.signature is not None
    assert derived.signature.inputs == (Tensor("data", (None, 5)),)
    assert derived.signature.outputs == (Tensor("fc_output", (None, 2)),)
    assert derived.notes == (f"{folder} has no signature.json; the archive's was derived from the network",)
    shaped = made(folder, shapes={"data": (None, 5)}, target=tmp_path / "shaped.zip")
    assert shaped.path.read_bytes() == derived.path.read_bytes()
    with pytest.raises(BadArtifact, match="has no input 'x'"):
        made(folder, shapes={"x": (None, 5)}, target=tmp_path / "x.zip")
    with pytest.raises(UsageError, match="--shape is for a model without a signature"):
        made(derived.path, shapes={"data": (None, 5)}, target=tmp_path / "x.zip")


def test_an_operator_that_is_not_converted_is_tried_with_mxnet_itself(tmp_path: Path) -> None:
    assert made(smooth(tmp_path / "smooth.zip"), cache=CACHE).kind == "mms archive"
    nodes = [node("null", "data"), node("Custom", "mine", 0, op_type="mine")]
    source = write(tmp_path / "custom.zip", nodes, {}, signature({"data": [0, 3]}, {"y": [0, 3]}, "application/json"))
    with pytest.raises(StartError, match="cannot be run by MXNet"):
        made(source, cache=CACHE, target=tmp_path / "custom" / "net.zip")
    assert made(source, check=False, target=tmp_path / "custom" / "net.zip").kind == "mms archive"


def test_a_service_whose_file_fails_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match=r"^nothing was written \(--no-check .* No module named 'nowhere'"):
        made(colours(tmp_path / "colours.zip", mine_py=f"import nowhere\n{SERVICE}"))


# other models


def test_an_onnx_model_brings_its_own_signature(tmp_path: Path) -> None:
    networks.dense(tmp_path / "m.onnx")
    exported = made(tmp_path / "m.onnx")
    assert list(exported.entries) == ["m.onnx", "signature.json"]
    assert parse_signature(member(exported, "signature.json"), "").inputs == (Tensor("x", (None, 3)),)
    rows = [[1, 2, 3]]
    assert np.allclose(ask(loaded(exported), raw(rows))[0], [networks.expected(rows)])
    assert made(exported.path, target=tmp_path / "again.zip").path.read_bytes() == exported.path.read_bytes()


def test_an_onnx_model_that_takes_pictures_says_so(tmp_path: Path) -> None:
    flat = helper.make_node("Flatten", ["image"], ["y"])
    networks.save(
        tmp_path / "m.onnx", [flat], [networks.value("image", ["N", 3, 4, 4])], [networks.value("y", ["N", 48])]
    )
    signature = made(tmp_path / "m.onnx").signature
    assert signature is not None
    assert signature.input_type == JPEG
    (tmp_path / "words").write_text("a\nb\n")
    with pytest.raises(BadArtifact, match="words has 2 labels, and the output 'y' has 48"):
        made(tmp_path / "m.onnx", synset=tmp_path / "words", force=True)


def test_a_hook_file_stays_one_with_the_files_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "shipping.py").write_text(f"import words\n{SHIPPING}".replace("Thundery", "{words.SAY}"))
    (tmp_path / "words.py").write_text("SAY = 'Fair'\n")
    with pytest.raises(LoadFailed, match="No module named 'words'"):
        made(tmp_path / "shipping.py")
    exported = made(tmp_path / "shipping.py", files=(tmp_path / "words.py",))
    artifact = open_artifact(str(exported.path), cache=tmp_path / "cache")
    assert (artifact.kind, Path(artifact.path).name) == ("hook file", "shipping.py")
    assert ask(loaded(exported), raw({"location": "Wight"}))[0]["location"] == "Wight"
    _, found = inspect(str(exported.path), cache=tmp_path / "cache")
    assert found.faults == []
    again = made(exported.path, target=tmp_path / "again.zip")
    assert again.path.read_bytes() == exported.path.read_bytes()


def test_a_script_s_folder_and_a_pickle_are_packed_whole(tmp_path: Path) -> None:
    folder = make_directory(tmp_path / "m", {"weights": b"3"})
    script = "def model_fn(model_dir): return float(open(model_dir + '/weights').read())\n"
    make_directory(folder / "code", {"inference.py": script.encode()})
    exported = made(folder)
    assert list(exported.entries) == ["code/inference.py", "weights"]
    assert open_artifact(str(exported.path), cache=tmp_path / "cache").kind == "script directory"
    joblib.dump(LogisticRegression().fit([[0], [1]], [0, 1]), tmp_path / "model.joblib")
    pickled = made(tmp_path / "model.joblib", target=tmp_path / "pickled.zip")
    assert pickled.kind == "sklearn"
    assert ask(loaded(pickled), raw([[0], [1]]))[0][0] == [0, 1]


def save(kind: str, path: Path) -> None:
    """A small model of its kind, written by its own library."""
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    if kind == "skops":
        skops.io.dump(LogisticRegression().fit(x, y), path)
    elif kind == "xgboost":
        xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(x, y), 1).save_model(path)
    elif kind == "lightgbm":
        lightgbm.train({"verbosity": -1}, lightgbm.Dataset(x, y), 1).save_model(path)
    else:
        torch = pytest.importorskip("torch")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's opinion of its own format
            torch.jit.trace(torch.nn.Linear(2, 3), torch.zeros(1, 2)).save(str(path))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("skops", "m.skops"),
        ("xgboost", "m.ubj"),
        ("lightgbm", "m.txt"),
        ("torchscript", "m.pt"),
    ],
)
def test_every_kind_of_model_s_file_is_known_again_in_its_archive(tmp_path: Path, kind: str, name: str) -> None:
    save(kind, tmp_path / name)
    exported = made(tmp_path / name)
    artifact = open_artifact(str(exported.path), cache=tmp_path / "cache")
    assert (artifact.kind, Path(artifact.path).name) == (kind, name)
    assert exported.signature is not None
    assert exported.signature.inputs[0].shape[1:] == (2,)
    assert made(exported.path, target=tmp_path / "again.zip").path.read_bytes() == exported.path.read_bytes()


def test_requirements_are_installed_for_the_check(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def predict_fn(data, model): return 1\n")
    (tmp_path / "r.txt").write_text("numpy\n")
    exported = made(tmp_path / "hooks.py", requirements=tmp_path / "r.txt")
    artifact = open_artifact(str(exported.path), cache=tmp_path / "cache")
    assert Path(artifact.requirements).read_text() == "numpy\n"


# what is refused before any work


def test_nothing_is_written_over_without_force(tmp_path: Path) -> None:
    source = colours(tmp_path / "colours.zip")
    before = source.read_bytes()
    with pytest.raises(UsageError, match=r"colours\.zip is there already; write over it with --force"):
        made(source, target=source)
    assert source.read_bytes() == before
    made(source, target=source, force=True)
    assert made(source, target=tmp_path / "again.zip").path.read_bytes() == source.read_bytes() != before


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("json.tool", {}, "json.tool is an installed module, which needs no archive"),
        ("m.onnx", {"shapes": {"x": (None, 3)}}, "--shape is for MXNet models, and .*m.onnx is none"),
        ("m.onnx", {"service": "hooks.py"}, "--service is for MXNet models, and .*m.onnx is none"),
        ("hooks.py", {"synset": "hooks.py"}, "of the kind 'hook file', which reads no synset.txt; leave --synset out"),
        ("double.zip", {"service": "hooks.py"}, "hooks.py defines no service class"),
        ("m.onnx", {"target": "."}, " is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_meant_is_a_wrong_command(
    tmp_path: Path, source: str, options: dict[str, Any], message: str
) -> None:
    networks.dense(tmp_path / "m.onnx")
    doubling(tmp_path / "double.zip")
    (tmp_path / "hooks.py").write_text("def predict_fn(data, model): return 1\n")
    given = {name: tmp_path / value if isinstance(value, str) else value for name, value in options.items()}
    order = Order("net", source if source == "json.tool" else str(tmp_path / source), tmp_path / "out.zip")
    with pytest.raises(UsageError, match=message):
        export(msgspec.structs.replace(order, **given), cache=tmp_path / "cache")
    assert not (tmp_path / "out.zip").exists()


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "net.zip", {"net-symbol.json": b"{}"})
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(BadArtifact, match=r"net\.zip is a truncated or corrupt zip"):
        made(path)
