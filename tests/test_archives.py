"""``docs/archives.md``: its commands are run in their order, on a real model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from examples.imagenet import archive as imagenet

from test_docs import ROOT, fences

DOCUMENT = ROOT / "docs" / "archives.md"


def test_every_command_works_as_printed(tmp_path: Path) -> None:
    imagenet.build(tmp_path / "trained.zip")
    shutil.unpack_archive(tmp_path / "trained.zip", tmp_path / "trained")
    for path in list((tmp_path / "trained").iterdir()):
        path.rename(path.with_name(path.name.replace(imagenet.NAME, "resnet-18")))
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "mms_export").write_text(f'#!/bin/sh\nexec {sys.executable} -m mms.export_command "$@"\n')
    (commands / "mms_export").chmod(0o755)
    path_variable = f"{Path(sys.executable).parent}:{commands}:{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path_variable, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    script = "set -e\n" + "".join(fences(DOCUMENT, "sh"))
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = sorted(path.name for path in (tmp_path / "models").iterdir())
    assert names == ["derived.zip", "resnet-18.zip", "vgg16.zip", "vgg19.model"]
    document = json.loads((tmp_path / "resnet-18.json").read_text())
    assert document["runs"] is True
    assert document["faults"] == []
    assert len(document["labels"]) == 1000
