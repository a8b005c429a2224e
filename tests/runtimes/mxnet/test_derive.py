from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadArtifact
from forecastle.models.signature import Tensor
from forecastle.runtimes.mxnet import params
from forecastle.runtimes.mxnet.derive import derive
from forecastle.runtimes.mxnet.symbol import SymbolBuilder

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"


def save(directory: Path, symbol: bytes, **weights: Any) -> Path:
    (directory / "m-symbol.json").write_bytes(symbol)
    params.save(directory / "m-0000.params", {f"arg:{name}": array for name, array in weights.items()})
    return directory


def test_a_dense_network_s_input_is_as_wide_as_its_first_weight(tmp_path: Path) -> None:
    builder = SymbolBuilder()
    data, weight, label = map(builder.variable, ("features", "fc_weight", "softmax_label"))
    scaled = builder.op("_mul_scalar", "scaled", [data], scalar=2)
    fc = builder.op("FullyConnected", "fc", [scaled, weight], num_hidden=3, no_bias=True)
    symbol = builder.write(builder.op("SoftmaxOutput", "softmax", [fc, label]))
    signature = derive(save(tmp_path, symbol, fc_weight=np.zeros((3, 7), np.float32)), "m")
    assert signature.inputs == (Tensor("features", (None, 7)),)
    assert (signature.input_type, signature.outputs) == ("application/json", ())


@pytest.mark.parametrize("stated", ["(1, 3, 8, 8)", "[0,3,8,8]"])
def test_a_shape_that_the_variable_states_is_taken(tmp_path: Path, stated: str) -> None:
    builder = SymbolBuilder()
    data = builder.variable("data")
    document = json.loads(builder.write(builder.op("Flatten", "flat", [data])))
    document["nodes"][0]["attrs"] = {"__shape__": stated}
    signature = derive(save(tmp_path, json.dumps(document).encode(), x=np.zeros(1, np.float32)), "m")
    assert signature.inputs == (Tensor("data", (None, 3, 8, 8)),)
    assert signature.input_type == "image/jpeg"


@pytest.mark.parametrize(
    ("graph", "known", "example"),
    [
        ("caffenet", r"'data' \[0, 3, \?, \?\]", r"--shape data=0,3,…,…"),
        ("inception_bn", r"'data' \[0, 3, \?, \?\]", r"--shape data=0,3,…,…"),
        ("lstm_ptb", r"'data' nothing", r"--shape data=0,…"),
    ],
)
def test_what_is_known_is_told_where_a_size_is_not(graph: str, known: str, example: str, tmp_path: Path) -> None:
    shutil.copytree(GRAPHS / graph, tmp_path / "m", ignore=shutil.ignore_patterns("*.npz"))
    with pytest.raises(BadArtifact, match=rf"^m\.zip has no signature\.json, .* only {known}.*{example}"):
        derive(tmp_path / "m", "m.zip")


def test_channels_are_those_of_all_groups(tmp_path: Path) -> None:
    builder = SymbolBuilder()
    data, weight = builder.variable("data"), builder.variable("w")
    symbol = builder.write(
        builder.op("Convolution", "c", [data, weight], num_group=2, kernel=(3, 3), num_filter=4, no_bias=True)
    )
    with pytest.raises(BadArtifact, match=r"'data' \[0, 6, \?, \?\]"):
        derive(save(tmp_path, symbol, w=np.zeros((4, 3, 3, 3), np.float32)), "m")


def test_a_network_without_inputs_is_refused(tmp_path: Path) -> None:
    builder = SymbolBuilder()
    symbol = builder.write(builder.op("Flatten", "flat", [builder.variable("w")]))
    with pytest.raises(BadArtifact, match=r"^m: m-symbol\.json has no input"):
        derive(save(tmp_path, symbol, w=np.zeros((1, 2), np.float32)), "m")
