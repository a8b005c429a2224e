"""Clipper's real client against our two ports: what its own integration tests assert of its REST APIs."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cli.process import serving
from side import CACHE, side_environment

SCENARIOS = Path(__file__).with_name("scenarios.py")
NEEDS = ("requests", "numpy", "pyyaml", "docker", "kubernetes", "jsonschema", "jinja2", "redis", "psutil")


def client_folder() -> Path:
    """Return the folder of clipper-admin 0.4.1, without what it pins: its cloudpickle is of 2018."""
    folder = CACHE / "clipper-admin-0.4.1"
    if not folder.is_dir():
        wheels = CACHE / "wheels"
        wheels.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, "clipper-admin==0.4.1"],
            check=True,
        )
        with zipfile.ZipFile(next(wheels.glob("clipper_admin-0.4.1*.whl"))) as wheel:
            wheel.extractall(folder)
    return folder


@pytest.mark.timeout(300)
def test_clippers_own_client_finds_what_its_tests_assert(tmp_path: Path) -> None:
    python = side_environment(*NEEDS, "cloudpickle>=3", "prometheus-client")
    with serving("--store", "memory", folder=tmp_path) as server:
        addresses = [url.removeprefix("http://") for url in (server.url, server.management)]
        done = subprocess.run(
            [python, "-W", "ignore", SCENARIOS, *addresses, tmp_path],
            env={"PYTHONPATH": str(client_folder()), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    failed = {name: result for name, result in results.items() if result != "ok"}
    assert not failed, "\n".join(failed.values())
    assert len(results) == 16
