"""Models with requirements, through a real server and ``forecastle env``."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cli.process import FORECASTLE, serving, starting

HOOKS = """
import numpy


def predict_fn(data, model):
    return {"version": numpy.__version__, "twice": (numpy.array(data) * 2).tolist()}
"""


def script(folder: Path, requirements: str | None) -> Path:
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "inference.py").write_text(HOOKS)
    if requirements is not None:
        (folder / "code" / "requirements.txt").write_text(requirements)
    return folder


def env(*arguments: str, cache: Path) -> str:
    command = [FORECASTLE[0], "env", *arguments, "--cache-dir", str(cache)]
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def test_models_that_need_conflicting_versions_run_side_by_side_wherever_the_need_is_stated(tmp_path: Path) -> None:
    script(tmp_path / "old", "numpy==2.1.2\n")
    script(tmp_path / "new", None)
    script(tmp_path / "own", None)
    (tmp_path / "newer.txt").write_text("numpy==2.1.3\n")
    (tmp_path / "forecastle.toml").write_text(
        '[models]\nold = "old"\nown = "own"\n[models.new]\nsource = "new"\nrequirements = "newer.txt"\n'
    )
    cache = tmp_path / "cache"
    with serving("--cache-dir", str(cache), folder=tmp_path) as server:
        answers = {
            name: server.post(f"/{name}/predict", b"[1, 2.5]").json()["prediction"] for name in ("old", "new", "own")
        }
        assert answers["old"] == {"version": "2.1.2", "twice": [2.0, 5.0]}
        assert answers["new"] == {"version": "2.1.3", "twice": [2.0, 5.0]}
        assert answers["own"]["version"] not in {"2.1.2", "2.1.3"}
        listed = env("list", cache=cache)
        assert [line.split()[-1] for line in listed.splitlines()[1:]] == ["numpy==2.1.3", "numpy==2.1.2"]
        assert env("prune", "--unused-for", "0", cache=cache) == "removed 0, 0.0 MB; 2 in use\n"
        assert server.post("/old/predict", b"[1]").status_code == 200
    assert env("prune", cache=cache) == "removed 0, 0.0 MB\n"
    assert env("prune", "--unused-for", "0", cache=cache).startswith("removed 2, ")
    assert env("list", cache=cache) == f"no environment has been made yet under {cache}\n"


def test_a_server_whose_models_requirements_cannot_be_had_ends_with_the_installers_message(tmp_path: Path) -> None:
    script(tmp_path / "m", None)
    (tmp_path / "r.txt").write_text("six==999\n")
    with starting("m=m", "--requirements", "m=r.txt", folder=tmp_path) as server:
        assert server.end() == 1
        assert "the requirements of 'm' could not be installed:\n" in server.log
        assert "six==999" in server.log
    with starting("m=m", "--requirements", "gone.txt", folder=tmp_path) as server:
        assert server.end() == 2
        assert "there is no file 'gone.txt'" in server.log
    with starting("m=m", "--requirements", "n=r.txt", folder=tmp_path) as server:
        assert server.end() == 2
        assert "requirements are set for 'n', but no such model is served; there is m" in server.log


def test_the_help_of_env_has_its_commands() -> None:
    said = subprocess.run([FORECASTLE[0], "env", "--help"], check=True, capture_output=True, text=True).stdout
    assert "list" in said
    assert "prune" in said
