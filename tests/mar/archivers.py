"""Archives made by the archivers of MMS 1.x and of TorchServe, as their packages have them."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path

from side import side_environment

NOOP = """
def handle(data, context):
    return data and ["OK"] * len(data)
"""
FORMATS = {"default": ".mar", "tgz": ".tar.gz", "no-archive": ""}
"""What either archiver calls its formats, and what it puts after the name."""


def mms_archive(
    folder: Path,
    files: Mapping[str, str],
    *,
    name: str = "noop",
    handler: str = "service:handle",
    form: str = "default",
) -> Path:
    """Make an archive with model-archiver 1.0.3."""
    content = _written(folder / f"{name}-content", files)
    arguments = ["--model-path", str(content), "--handler", handler]
    return _made("model-archiver==1.0.3", folder, name, form, arguments)


def torch_archive(
    folder: Path,
    files: Mapping[str, str | bytes],
    *arguments: str,
    name: str = "noop",
    handler: str = "service.py",
    version: str = "1.0",
    form: str = "default",
) -> Path:
    """Make an archive with torch-model-archiver; ``files`` has the handler, and what ``arguments`` name."""
    content = _written(folder / f"{name}-content", files)
    given = [str(content / each) if each in files else each for each in ("--handler", handler, *arguments)]
    return _made("torch-model-archiver==0.12.0", folder, name, form, ["--version", version, *given])


def _written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else textwrap.dedent(content).encode()
        (folder / name).write_bytes(data)
    return folder


def _made(package: str, folder: Path, name: str, form: str, arguments: list[str]) -> Path:
    command = Path(side_environment(package)).with_name(package.partition("==")[0])
    shared = ["--model-name", name, "--export-path", str(folder), "--archive-format", form, "--force"]
    done = subprocess.run([command, *shared, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / f"{name}{FORMATS[form]}"
