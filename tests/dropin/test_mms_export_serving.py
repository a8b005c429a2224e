"""``export_serving`` in an environment with the real MXNet, and what it wrote, served without."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecastle.cluster.environments.mxnet import requirements
from forecastle.errors import BadArtifact, UsageError
from forecastle.models.artifact import Artifact
from forecastle.models.inspection import inspect
from forecastle.models.signature import Tensor, parse_signature
from forecastle.runtimes import mxnet
from mms.export_model import export_serving
from side import side_environment

TRAINING = """
import mxnet as mx
import numpy as np
from mms.export_model import export_serving

data = np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32)
net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
module.bind([("data", (4, 5))], [("softmax_label", (4,))])
module.init_params(mx.init.Xavier())
signature = {"input_type": "application/json", "output_type": "application/json"}
print(export_serving(module, "module", signature, "out", ["synset.txt"]))
answers = module.predict(mx.io.NDArrayIter(data, batch_size=4)).asnumpy()

block = mx.gluon.nn.HybridSequential()
block.add(mx.gluon.nn.Conv2D(2, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
block.initialize()
block.hybridize()
pictures = np.random.default_rng(2).normal(size=(2, 3, 6, 6)).astype(np.float32)
of_block = block(mx.nd.array(pictures)).asnumpy()
described = {"inputs": [{"data_name": "data", "data_shape": [0, 3, 6, 6]}], "input_type": "image/jpeg"}
print(export_serving(block, "block.zip", described, "out", [mx.__file__.replace("__init__.py", "libinfo.py")]))
np.savez("answers.npz", data=data, module=answers, pictures=pictures, block=of_block)

def refused(*arguments, **more):
    try:
        export_serving(*arguments, **more)
    except Exception as error:
        print(type(error).__name__, error)

refused(module, "wrong", {**signature, "inputs": [{"data_name": "data", "data_shape": [0, 6]}]}, "out")
refused(mx.mod.Module(net, label_names=None), "unbound", signature, "out")
refused(module, "module", signature, "out")
refused(block, "bare", signature, "out")
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder that a training script left, and what it said."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "synset.txt").write_text("red\ngreen\nblue\n")
    python = side_environment(*requirements(), "uv>=0.5")
    variables = {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": ""}
    done = subprocess.run(
        [python, "-c", TRAINING], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, done


def answers(archive: Path, folder: Path, name: str) -> Any:
    """What the archive's model answers without MXNet, and what MXNet answered."""
    _, found = inspect(str(archive), cache=folder / "cache")
    assert found.faults == []
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder / name)
    model = mxnet.open(Artifact("mms archive", "mxnet", str(folder / name), name)).model_fn("")
    with np.load(folder / "answers.npz") as saved:
        (fed,) = (saved[key] for key in {"module": ("data",), "block": ("pictures",)}[name])
        return model.run({"data": fed})[0], saved[name]


def test_a_module_tells_its_inputs_and_outputs(trained: Any) -> None:
    folder, done = trained
    archive = folder / "out" / "module.model"
    assert done.stdout.splitlines()[0] == str(archive)
    ours, theirs = answers(archive, folder, "module")
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    with zipfile.ZipFile(archive) as file:
        written = parse_signature(file.read("signature.json"), "")
        assert json.loads(file.read("MANIFEST.json"))["Engine"] == {"MXNet": 1.9}
    assert written.inputs == (Tensor("data", (None, 5)),)
    assert written.outputs == (Tensor("softmax_output", (None, 3)),)


def test_a_gluon_block_s_outputs_are_those_that_it_has(trained: Any) -> None:
    folder, done = trained
    archive = folder / "out" / "block.zip"
    assert done.stdout.splitlines()[1] == str(archive)
    ours, theirs = answers(archive, folder, "block")
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    with zipfile.ZipFile(archive) as file:
        assert "libinfo.py" in file.namelist()
        assert [tensor.shape[1:] for tensor in parse_signature(file.read("signature.json"), "").outputs] == [(3,)]


def test_what_is_wrong_is_told_without_the_folder_in_between(trained: Any) -> None:
    folder, done = trained
    wrong, unbound, again, bare = done.stdout.splitlines()[2:]
    assert wrong.startswith("BadArtifact wrong cannot be run by MXNet: ")
    assert unbound.startswith("UsageError the Module is not bound: call bind()")
    assert again == "UsageError out/module.model is there already; write over it with --force, or choose another place"
    assert bare.startswith("UsageError the signature has no inputs, and a Gluon block does not tell them")
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["block.zip", "module.model"]


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a dict cannot be exported: expected a Module or a Gluon HybridBlock"):
        export_serving({}, "x", {}, tmp_path)


def test_inputs_that_are_not_the_module_s_are_refused(tmp_path: Path) -> None:
    class Module:
        binded = True
        data_shapes = (("data", (4, 5)),)
        output_shapes = (("y", (4, 3)),)
        save_checkpoint = None

    given = {"input": [{"data_name": "image", "data_shape": [0, 5]}], "input_type": "application/json"}
    with pytest.raises(BadArtifact, match=r"the signature's inputs are \['image'\], and the Module's are \['data'\]"):
        export_serving(Module(), "x", given, tmp_path)
