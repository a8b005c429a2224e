"""Wheels of this project, built once a test run, for tests that install it as a stranger does."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from pathlib import Path

import uv

ROOT = Path(__file__).parents[1]
SOURCES = ("src", "dropin", "pyproject.toml", "README.md")


def wheels() -> Path:
    """The folder of the two wheels, named by what they are built from; several tests may ask for it at once."""
    hashed = hashlib.sha256()
    files = [found for name in SOURCES for found in [ROOT / name, *(ROOT / name).rglob("*")] if found.is_file()]
    for file in sorted(files):
        if "__pycache__" not in file.parts:
            hashed.update(str(file).encode() + file.read_bytes())
    folder = ROOT / ".cache" / "wheels" / hashed.hexdigest()[:16]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if len(list(folder.glob("*.whl"))) < 2:
            for project in (ROOT, ROOT / "dropin"):
                command = [uv.find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", str(folder), str(project)]
                subprocess.run(command, check=True)
    return folder
