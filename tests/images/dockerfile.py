"""Following a Dockerfile without an engine: its steps run here, below a folder that stands for the image's root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path
from typing import NamedTuple


class Built(NamedTuple):
    """What the image would run: the command, its variables and its working folder."""

    command: list[str]
    environment: dict[str, str]
    folder: Path
    labels: dict[str, str]


def follow(dockerfile: Path, root: Path, python: str) -> Built:
    """Take the steps of a Dockerfile whose base is Debian with a Python: a virtual environment stands for it."""
    venv.create(root / "python", with_pip=True, symlinks=True)
    environment = {**os.environ, "PATH": f"{root / 'python' / 'bin'}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    folder, command = root, list[str]()
    labels: dict[str, str] = {}
    for instruction, words in _instructions(dockerfile):
        if instruction == "WORKDIR":
            folder = root / words.lstrip("/")
            folder.mkdir(parents=True)
        elif instruction == "ENV":
            environment |= dict(word.split("=", 1) for word in words.split())
        elif instruction == "LABEL":
            labels |= {key: value.strip('"') for key, value in (word.split("=", 1) for word in words.split())}
        elif instruction == "COPY":
            source, target = words.split()
            if (dockerfile.parent / source).is_dir():
                shutil.copytree(dockerfile.parent / source, folder / target, dirs_exist_ok=True)
            else:
                shutil.copy(dockerfile.parent / source, folder / target)
        elif instruction == "RUN" and "apt-get" not in words:
            done = subprocess.run(
                words, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        elif instruction in {"ENTRYPOINT", "CMD"}:
            command += json.loads(words)
    command[0] = shutil.which(command[0], path=environment["PATH"]) or command[0]
    return Built(command, environment, folder, labels)


def _instructions(dockerfile: Path) -> list[tuple[str, str]]:
    text = dockerfile.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(" ", 1)[0], " ".join(line.split(" ", 1)[1].split())) for line in lines]
