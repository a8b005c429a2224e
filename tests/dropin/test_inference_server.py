"""The drop-in beside its namesake: the same tests run against both, each in an environment where it is the only one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from cli.test_plugins import DATA, FORECAST, environment_with
from side import side_environment

CONTRACT = Path(__file__).parent / "contract"
NAMESAKE = ("inference-server==1.3.3", "pytest>=8", "gunicorn>=23")


def python_of(implementation: str) -> str:
    return sys.executable if implementation == "ours" else side_environment(*NAMESAKE)


@pytest.mark.parametrize("tests", ["same", "differences"])
@pytest.mark.parametrize("implementation", ["ours", "theirs"])
def test_the_contract_holds_for(implementation: str, tests: str) -> None:
    options = [
        "-c",
        os.devnull,
        "--rootdir",
        str(CONTRACT),
        "--confcutdir",
        str(CONTRACT),
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=prepend",
    ]
    done = subprocess.run(
        [python_of(implementation), "-m", "pytest", *options, str(CONTRACT / f"inference_server_{tests}.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d\d+ passed in", done.stdout, re.MULTILINE), done.stdout


@contextmanager
def gunicorn(python: str, folder: Path, *options: str) -> Iterator[str]:
    command = [python, "-m", "gunicorn", "inference_server:create_app()", "-b", "127.0.0.1:0", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            seen = ""
            for line in process.stderr:
                seen += line
                if match := re.search(r"Listening at: (http://\S+)", line):
                    yield match[1]
                    break
            else:
                raise AssertionError(seen)
        finally:
            process.terminate()


@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_the_installed_shipping_forecast_answers_under_gunicorn(tmp_path: Path, worker: str) -> None:
    python = environment_with(tmp_path, DATA / "shipping_forecast")
    with gunicorn(str(python), tmp_path, "--worker-class", worker) as url:
        assert httpx.get(f"{url}/ping").status_code == 200
        reply = httpx.post(f"{url}/invocations", json={"location": "Fair Isle"})
        assert (reply.status_code, reply.json()) == (200, FORECAST)
        refused = httpx.post(f"{url}/invocations", content=b"no", headers={"content-type": "application/json"})
        assert (refused.status_code, refused.json()["type"]) == (400, "BadInput")
        assert "Traceback" not in refused.text
        refused = httpx.post(f"{url}/invocations", json={"location": "x"}, headers={"accept": "text/csv"})
        assert refused.status_code == 406
