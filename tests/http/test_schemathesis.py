"""Requests made up from our own description find nothing that it does not say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.process import serving
from runtimes import networks
from runtimes.archives import colours
from side import side_environment


@pytest.mark.parametrize("model", ["dense.onnx", "two.onnx", "hooks.py", "colours.zip"])
def test_no_request_that_fits_the_description_is_refused_and_no_answer_is_none_of_its(
    tmp_path: Path, model: str
) -> None:
    networks.dense(tmp_path / "dense.onnx")
    networks.two_inputs(tmp_path / "two.onnx")
    colours(tmp_path / "colours.zip")
    (tmp_path / "hooks.py").write_text("def predict_fn(data, model):\n    return str(type(data))\n")
    python = side_environment("schemathesis>=4,<5")
    options = ["--max-examples", "20", "--no-color", "--seed", "7", "--generation-database", "none"]
    if model in {"colours.zip", "two.onnx"}:  # no schema can say which bytes are a picture, or relate two inputs' rows
        options += ["--exclude-checks", "positive_data_acceptance"]
    with serving(model, folder=tmp_path) as server:
        program = [python, str(Path(python).with_name("schemathesis"))]
        command = [*program, "run", f"{server.url}/openapi.json", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=110)
        assert done.returncode == 0, done.stdout[-4000:]
        assert "failed inside the server" not in server.log
