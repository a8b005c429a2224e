from __future__ import annotations

import contextlib
from pathlib import Path

import psutil
import pytest

from forecastle.cluster.trial import failure, try_model
from forecastle.errors import BadArtifact, LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Tensor
from forecastle.models.trial import Trial
from runtimes.networks import dense


def hooks(folder: Path, text: str) -> Artifact:
    path = folder / "hooks.py"
    path.write_text(text)
    return Artifact("hook file", "script", str(path), "hooks.py")


def test_a_model_that_loads_says_what_it_takes_and_gives(tmp_path: Path) -> None:
    trial = try_model(dense(tmp_path / "m.onnx"))
    assert (trial.runtime, trial.error) == ("onnx", "")
    assert trial.signature is not None
    assert trial.signature.inputs == (Tensor("x", (None, 3)),)
    assert trial.signature.outputs == (Tensor("scores", (None, 4)),)
    assert trial.seconds > 0


def test_what_a_model_prints_is_no_part_of_the_answer(tmp_path: Path) -> None:
    loud = "import os\ndef model_fn(model_dir):\n    print('{}')\n    os.system('echo loud')\n    return 1\n"
    assert try_model(hooks(tmp_path, loud)).error == ""


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("raise ValueError('no weights')", "ValueError", "hooks.py cannot be loaded: ValueError: no weights"),
        ("import nowhere", "ModuleNotFoundError", "hooks.py cannot be loaded: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "SystemExit", "hooks.py cannot be loaded: SystemExit: 3"),
        ("import os; os._exit(7)", "LoadFailed", "hooks.py: the process that loaded it ended with the code 7"),
        ("import os; os.abort()", "LoadFailed", "hooks.py: the process that loaded it was ended by SIGABRT"),
    ],
)
def test_a_model_that_does_not_load_is_told_with_its_reason(
    tmp_path: Path, code: str, error: str, message: str
) -> None:
    trial = try_model(hooks(tmp_path, f"def model_fn(model_dir):\n    {code}\n"))
    assert trial.error == error
    assert trial.missing is (error == "ModuleNotFoundError")
    assert failure(trial, "hooks.py").message.startswith(message)


def test_the_last_lines_of_a_process_that_died_are_told(tmp_path: Path) -> None:
    said = "print('out of luck', file=sys.stderr, flush=True)"
    code = f"import os, sys\ndef model_fn(model_dir):\n    {said}\n    os._exit(1)\n"
    assert try_model(hooks(tmp_path, code)).message.endswith("\nout of luck")


def test_a_model_that_takes_too_long_ends_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, time\n"
        "def model_fn(model_dir):\n"
        f"    child = subprocess.Popen(['sleep', '600'])\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "    time.sleep(600)\n"
    )
    trial = try_model(hooks(tmp_path, code), patience=3)
    assert trial.message == "hooks.py was not loaded within 3 s"
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int((tmp_path / "pid").read_text())).wait(10)


def test_a_file_in_the_working_folder_shadows_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "onnxruntime.py").write_text("raise RuntimeError('not me')\n")
    (tmp_path / "m").mkdir()
    assert try_model(dense(tmp_path / "m" / "m.onnx")).error == ""


def test_failures_keep_the_type_that_matters() -> None:
    assert isinstance(failure(Trial(error="BadArtifact", message="m"), "x"), BadArtifact)
    assert isinstance(failure(Trial(error="LoadFailed", message="m"), "x"), LoadFailed)
