"""``forecastle build``: what a platform runs, from a model or a project of hooks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from forecastle.cli import check as checking
from forecastle.cluster.specs import default_cache_dir, parse_model, valid_name
from forecastle.errors import StartError
from forecastle.images.sagemaker import Image, write

app = App(name="build", help="Build what a platform runs.")

_BASE = Image(name="model").base


@app.command
def sagemaker(
    source: str | None = None,
    /,
    *,
    output: Path = Path("image"),
    tag: str | None = None,
    base: str = _BASE,
    wheel: Annotated[list[Path] | None, Parameter(negative=())] = None,
    extra: list[str] | None = None,
    user: str = "",
    force: bool = False,
    check: Annotated[bool, Parameter(negative="--no-check")] = True,
) -> int:
    """Write the Dockerfile of an image for SageMaker; with a Docker engine, build the image and check it.

    Args:
        source: A project of hooks (a folder with a pyproject.toml), or NAME=SOURCE as `forecastle serve` takes it.
            Without one, the image serves what the platform puts under /opt/ml/model.
        output: The folder to write; it has all that the image is built from.
        tag: The image's name (default: the model's, with :latest).
        base: The image to start from.
        wheel: A wheel to install instead of what an index has, Forecastle's own among them; may be repeated.
        extra: An extra of Forecastle to install, such as onnx; the model's own is known. May be repeated.
        user: The number of the user to run as (default: root, as SageMaker expects).
        force: Write over a folder that is not empty.
        check: Check the image once it is built; --no-check leaves it out.
    """
    name, place = _named(source)
    image = Image(name, place, base, tuple(wheel or ()), tuple(extra or ()), user)
    dockerfile = write(image, output, default_cache_dir(), force=force)
    tag = tag or f"{name.lower()}:latest"
    build = ["docker", "build", "--tag", tag, str(output)]
    sys.stdout.write(f"wrote {dockerfile}\n")
    if not _engine():
        sys.stdout.write(f"no Docker engine answers here; build the image where one does: {' '.join(build)}\n")
        return 0
    sys.stdout.flush()
    code = subprocess.run(build, check=False).returncode  # noqa: S603 -- a list of words, and no shell
    if code != 0:
        raise StartError(f"the image could not be built: docker build ended with {code}")
    sys.stdout.write(f"built {tag}\n")
    return checking.sagemaker(tag) if check and source is not None else 0


def _named(source: str | None) -> tuple[str, str | None]:
    if source is None:
        return "forecastle-sagemaker", None
    if Path(source).is_dir():
        return valid_name(Path(source).resolve().name), source
    return parse_model(source)


def _engine() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = ["docker", "version", "--format", "{{.Server.Version}}"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0  # noqa: S603
