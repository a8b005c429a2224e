"""``docs/hooks.md`` from its empty folder to its image: each file is written and each command run, in their order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.test_sagemaker import free_port
from forecastle.check.sagemaker import Subject, run
from forecastle.check.target import started
from images.dockerfile import follow
from test_docs import ROOT, fences
from wheels import wheels

DOCUMENT = ROOT / "docs" / "hooks.md"
LAST = "all commands were run"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables in which ``pip install forecastle`` installs what lies here, and ports are free ones."""
    constraints = tmp_path / "constraints.txt"
    built = {wheel.name.split("-")[0].replace("_", "-"): wheel for wheel in wheels().glob("*.whl")}
    constraints.write_text("".join(f"{name} @ file://{wheel}\n" for name, wheel in built.items()))
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(constraints),
        "FORECASTLE_PORT": str(free_port()),
        "FORECASTLE_MANAGEMENT_PORT": str(free_port()),
    }


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial uses curl")
def test_every_command_from_the_empty_folder_to_the_image_works_as_printed(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for language in ("toml", "python"):
        for source in fences(DOCUMENT, language):
            if match := re.match(r"# (shipping/\S+)\n", source):
                (tmp_path / match[1]).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / match[1]).write_text(source)
    lines = "".join(fences(DOCUMENT, "sh")).replace(":8080/", f":{environment['FORECASTLE_PORT']}/").splitlines()
    here = [line for line in lines if not line.startswith("docker ")]
    assert [line.split()[:2] for line in lines if line not in here] == [["docker", "build"], ["docker", "run"]]
    script = "\n".join(["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *here, f"echo {LAST}"])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{LAST}\n")
    assert '{"sea_state":"Rough or very rough."}' in done.stdout
    assert " 0 failed" in done.stdout
    # What only an engine can do is done by following the Dockerfile.
    monkeypatch.setenv("PIP_CONSTRAINT", environment["PIP_CONSTRAINT"])
    built = follow(tmp_path / "image" / "Dockerfile", tmp_path / "root", sys.executable)
    command = ["sh", "-c", f'cd "{built.folder}" && exec "$@"', "sh", *built.command, "--management-port", "0"]
    with started(command, built.environment, 60) as server:
        findings = list(run(Subject(server, (tmp_path / "shipping" / "sample.json").read_bytes(), given=True)))
    assert [finding for finding in findings if finding.verdict == "fail"] == []
