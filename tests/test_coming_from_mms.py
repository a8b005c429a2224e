"""``docs/coming-from-mms.md``: its commands run as they are printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from examples.imagenet import archive as imagenet

from cli.test_sagemaker import free_port
from side import side_environment
from test_docs import ROOT, fences

SCRIPTS = fences(ROOT / "docs" / "coming-from-mms.md", "sh")
START = "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
"""Whatever fails ends what runs in the background with it."""

SAYS = (
    ['"prediction":', "swagger", "healthy!"],
    ["prediction=[[{'class':", "cat"],
    ["OK", "Workers scaled", '"modelName":"another"', "RESTful API for: another", "unregistered"],
)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
@pytest.mark.parametrize(("script", "says"), list(zip(SCRIPTS, SAYS, strict=True)), ids=["serve", "client", "handlers"])
def test_the_commands_of_the_page_work_as_printed(tmp_path: Path, script: str, says: list[str]) -> None:
    imagenet.build(tmp_path / "resnet-18.zip")
    imagenet.cat(tmp_path / "white-sleeping-kitten.jpg")
    archiver = Path(side_environment("model-archiver==1.0.3")).parent
    # Last, for it has a Python too.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:{archiver}"}
    ports = {"8080": str(free_port()), "8081": str(free_port())}
    done = subprocess.run(
        ["bash", "-c", START + re.sub("808[01]", lambda found: ports[found[0]], script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in says:
        assert text in done.stdout
