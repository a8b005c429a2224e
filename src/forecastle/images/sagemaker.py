"""An image for SageMaker: a folder with a Dockerfile and all that it copies, so that the folder can be built anywhere.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forecastle.errors import SourceNotFound, UsageError
from forecastle.models.artifact import Artifact, open_artifact

HOME = "/opt/forecastle"
"""Where the image has its settings and the models that are part of it."""

LABELS = {
    "com.amazonaws.sagemaker.capabilities.accept-bind-to-port": "true",
    "com.amazonaws.sagemaker.capabilities.multi-models": "true",
}
_LIBRARIES = {"lightgbm": ["libgomp1"], "mxnet": ["libgomp1"]}
"""Debian packages that a slim base lacks and a runtime needs."""

_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git", ".venv", "*.egg-info", "build", "dist", ".*_cache")


class Image(msgspec.Struct, frozen=True):
    """What the image is made of.

    ``source`` is a project of hooks (a folder with a pyproject.toml), a model as ``forecastle serve`` takes it, or
    ``None`` for an image whose model comes from the platform. ``base`` is the image to start from, ``wheels`` are files
    to install instead of what an index has, ``extras`` Forecastle's, ``user`` a number to run as, empty for root.
    """

    name: str
    source: str | None = None
    base: str = f"python:{sys.version_info[0]}.{sys.version_info[1]}-slim"
    wheels: tuple[Path, ...] = ()
    extras: tuple[str, ...] = ()
    user: str = ""


def write(image: Image, folder: Path, cache: Path, *, force: bool = False) -> Path:
    """Write the folder, and return the path of its Dockerfile.

    Raises:
        UsageError: the folder holds something already, and ``force`` is not given.
        StartError: the source cannot be found or recognised.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not force:
            raise UsageError(f"{folder} is not empty; choose another folder, or write over it with --force")
        shutil.rmtree(folder)
    project = image.source is not None and any((Path(image.source) / name).is_file() for name in _PROJECT)
    artifact = None if image.source is None or project else open_artifact(image.source, cache=cache)
    folder.mkdir(parents=True, exist_ok=True)
    extras = set(image.extras)
    copied: list[str] = []
    if project:
        shutil.copytree(str(image.source), folder / "project", ignore=_LEFT_OUT)
    if artifact is not None:
        extras |= {artifact.runtime} - {"script", "plugins"}
        copied = _copy_model(image.name, artifact, folder / "models")
    wheels = _copy_wheels(image.wheels, folder / "wheels")
    _write_requirements(folder / "requirements.txt", wheels, sorted(extras))
    (folder / "Dockerfile").write_text(_dockerfile(image, sorted(extras), project=project, copied=copied))
    return folder / "Dockerfile"


def _copy_model(name: str, artifact: Artifact, models: Path) -> list[str]:
    """Copy a model and write the settings that name it; return its requirements files, as the image sees them."""
    if artifact.kind == "module":
        raise UsageError(
            f"{artifact.source} is a module of this machine; give the folder of its project (with a pyproject.toml)"
        )
    path = Path(artifact.path)
    whole = path.is_dir() or bool(artifact.script)
    source = path if path.is_dir() else path.parent
    if whole:
        shutil.copytree(source, models / name, ignore=_LEFT_OUT)
        settings = name
    else:
        # Beside a file lie what it needs: modules of a hook file, a signature, labels.
        (models / name).mkdir(parents=True)
        for beside in sorted(path.parent.iterdir()):
            module = artifact.kind == "hook file" and beside.suffix == ".py"
            if beside == path or (beside.is_file() and (module or beside.name in _BESIDE)):
                shutil.copy(beside, models / name)
        settings = f"{name}/{path.name}"
    (models / "forecastle.toml").write_text(f"[models]\n{json.dumps(name)} = {json.dumps(settings)}\n")
    needed = sorted(models.rglob("requirements.txt"))
    return [found.relative_to(models).as_posix() for found in needed]


_BESIDE = {"signature.json", "synset.txt", "requirements.txt"}


def _copy_wheels(wheels: Sequence[Path], folder: Path) -> list[str]:
    for wheel in wheels:
        if not wheel.is_file():
            raise SourceNotFound(f"the wheel {wheel} is not there")
        folder.mkdir(exist_ok=True)
        shutil.copy(wheel, folder)
    return [wheel.name for wheel in wheels]


def _write_requirements(path: Path, wheels: list[str], extras: list[str]) -> None:
    """Name Forecastle in this version, or the wheels that were given: those of Forecastle with its extras."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    if wheels:
        lines = [f"wheels/{name}{wanted if name.startswith('forecastle-') else ''}" for name in wheels]
    else:
        version = importlib.metadata.version("forecastle")
        lines = [f"forecastle{wanted}=={version}", f"forecastle-dropin=={version}"]
    path.write_text("".join(f"{line}\n" for line in lines))


def _dockerfile(image: Image, extras: list[str], *, project: bool, copied: list[str]) -> str:
    libraries = sorted({library for extra in extras for library in _LIBRARIES.get(extra, ())})
    labels = {**LABELS, "org.opencontainers.image.title": image.name}
    lines = [
        "# Written by forecastle build sagemaker.",
        f"FROM {image.base}",
        "LABEL " + " \\\n      ".join(f'{key}="{value}"' for key, value in labels.items()),
        "ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1",
        f"WORKDIR {HOME}",
    ]
    if libraries:
        install = f"apt-get install -y --no-install-recommends {' '.join(libraries)}"
        lines.append(f"RUN apt-get update && {install} && rm -rf /var/lib/apt/lists/*")
    lines.append("COPY requirements.txt ./")
    if image.wheels:
        lines.append("COPY wheels wheels/")
    lines.append("RUN pip install --root-user-action=ignore -r requirements.txt")
    if project:
        lines += ["COPY project project/", "RUN pip install --root-user-action=ignore ./project"]
    if image.source is not None and not project:
        lines.append("COPY models ./")
        # Installed in the image's own environment, so that nothing is installed when it starts.
        lines += [f"RUN pip install --root-user-action=ignore -r {requirements}" for requirements in copied]
    lines += [
        f"ENV FORECASTLE_CACHE_DIR=/tmp/forecastle{'' if not image.user else ' HOME=/tmp'}",
        "EXPOSE 8080",
        *([f"USER {image.user}"] if image.user else []),
        "# As an exec form, so that the server is the first process and gets SIGTERM itself.",
        'ENTRYPOINT ["forecastle"]',
        'CMD ["serve"]',
    ]
    return "\n".join(lines) + "\n"
