from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.models.signature import Tensor
from forecastle.runtimes.mxnet.archive import import_archive
from runtimes.mxnet.converted import run

FCN = Path(__file__).parents[2] / "data/graphs/fcn"
INPUTS = [{"data_name": "data", "data_shape": [0, 3, 32, 32]}]


def archive(directory: Path, inputs: list[dict[str, Any]] = INPUTS, **more: Any) -> Path:
    for name in ("m-symbol.json", "m-0000.params"):
        shutil.copyfile(FCN / name, directory / name)
    signature = {"inputs": inputs, "input_type": "application/json", **more}
    (directory / "signature.json").write_text(json.dumps(signature))
    return directory


def test_an_archive_becomes_a_model_with_the_symbols_outputs(tmp_path: Path) -> None:
    imported = import_archive(archive(tmp_path), "fcn.zip")
    assert imported.signature.outputs == (Tensor("softmax_output", (None, 13, 32, 32)),)
    with np.load(FCN / "ref.npz") as file:
        answer = run(imported.model, {"data": file["in_data"]})["softmax_output"]
        np.testing.assert_allclose(answer, file["out_0"], rtol=0, atol=1e-5)


def test_outputs_keep_the_names_of_the_signature(tmp_path: Path) -> None:
    outputs = [{"data_name": "classes", "data_shape": [0, 13, 32, 0]}]
    signature = import_archive(archive(tmp_path, outputs=outputs), "fcn.zip").signature
    assert signature.outputs == (Tensor("classes", (None, 13, 32, None)),)


def test_inputs_are_float32_whatever_the_signature_states(tmp_path: Path) -> None:
    imported = import_archive(archive(tmp_path, [{**INPUTS[0], "dtype": "uint8"}]), "fcn.zip")
    assert imported.signature.inputs == (Tensor("data", (None, 3, 32, 32)),)


@pytest.mark.parametrize(
    ("shapes", "problem"),
    [
        ([[0, 13, 32, 32], [0]], r"lists 2 outputs and the symbol has 1 \(softmax_output\)"),
        ([[0, 12, 32, 32]], r"'out0' has the shape \[0, 12, 32, 32\], and the symbol computes \[0, 13, 32, 32\]"),
        ([[0, 13]], r"the shape \[0, 13\], and the symbol computes"),
    ],
)
def test_a_signature_that_contradicts_the_symbol_is_refused(
    shapes: list[list[int]], problem: str, tmp_path: Path
) -> None:
    outputs = [{"data_name": f"out{i}", "data_shape": shape} for i, shape in enumerate(shapes)]
    with pytest.raises(BadArtifact, match=rf"^fcn\.zip: signature\.json .*{problem}"):
        import_archive(archive(tmp_path, outputs=outputs), "fcn.zip")


def test_an_input_that_the_symbol_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArtifact, match=r"m-symbol\.json has no input 'image': .* 'data', 'softmax_label'"):
        import_archive(archive(tmp_path, [{"data_name": "image", "data_shape": [0, 3, 32, 32]}]), "fcn.zip")


def test_a_shape_that_does_not_fit_the_parameters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArtifact, match=r"the node 'c1' \(Convolution\) cannot be read: its weight has the shape"):
        import_archive(archive(tmp_path, [{"data_name": "data", "data_shape": [0, 4, 32, 32]}]), "fcn.zip")


def test_parameters_of_another_network_are_named(tmp_path: Path) -> None:
    archive(tmp_path)
    shutil.copyfile(FCN.with_name("caffenet") / "m-0000.params", tmp_path / "m-0000.params")
    with pytest.raises(BadArtifact, match="needs the variable 'c1_weight', 'c1_bias', 'up_weight', which is neither"):
        import_archive(tmp_path, "fcn.zip")


def test_an_operator_without_a_converter_is_named(tmp_path: Path) -> None:
    symbol = archive(tmp_path) / "m-symbol.json"
    symbol.write_text(symbol.read_text().replace('"Deconvolution"', '"DeformableConvolution"'))
    with pytest.raises(LoadFailed, match=r"the operator 'DeformableConvolution' \(node 'up'\)"):
        import_archive(tmp_path, "fcn.zip")
