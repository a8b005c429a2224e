"""What an artifact is, told from its files alone: nothing of it is run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from forecastle.models import manifest, mar, operators
from forecastle.models.artifact import Artifact, open_artifact
from forecastle.models.engines import needs_mxnet
from forecastle.models.export import Order, gather
from forecastle.models.manifest import NAMES
from forecastle.models.mms import SIGNATURE, SYNSET, find_files
from forecastle.models.progress import Progress, silent
from forecastle.models.signature import Signature, read_signature
from forecastle.models.synset import read_synset

DATA = {"mms archive", "onnx", "skops", "xgboost", "lightgbm"}
"""The kinds of models whose loading runs no code of theirs."""


class File(msgspec.Struct, frozen=True):
    """A file of an artifact, its size in bytes, and what it is for; empty where that is not known."""

    name: str
    size: int
    role: str


class Inspection(msgspec.Struct, frozen=True):
    """What an artifact is.

    ``sha256`` is that of the source's file, empty for a folder; ``size`` is that of all files. ``signature`` and
    ``labels`` are what lies beside the model. ``faults`` says where the files differ from their manifest, ``native``
    why MXNet itself has to run it.
    """

    source: str
    kind: str
    runtime: str
    size: int = 0
    sha256: str = ""
    files: list[File] = []
    signature: Signature | None = None
    labels: list[str] = []
    service: str = ""
    script: str = ""
    requirements: list[str] = []
    operators: dict[str, int] = {}
    faults: list[str] = []
    native: str = ""

    @property
    def is_data(self) -> bool:
        """Whether it can be loaded without running code of its own, and with what is installed here."""
        return not self.hindrance

    @property
    def hindrance(self) -> str:
        """Why it should be loaded only by whoever wants it; empty where nothing speaks against it."""
        if self.kind not in DATA or self.service or self.script:
            return "that runs code that it brings"
        if self.requirements:
            return "its requirements are to be installed first"
        return f"MXNet is to be installed first ({self.native})" if self.native else ""


def inspect(source: str, *, cache: Path, progress: Progress = silent) -> tuple[Artifact, Inspection]:
    """Recognise an artifact and look at it; what is downloaded or unpacked for it lies below ``cache``.

    Raises:
        StartError: as ``open_artifact`` does; or the labels or the network's file cannot be read.
    """
    artifact = open_artifact(source, cache=cache, progress=progress)
    if artifact.kind == "module":
        return artifact, Inspection(source, artifact.kind, artifact.runtime)
    found = gather(Order("", source, Path()), Path(), cache=cache, progress=progress)
    folder = found.folder
    files = dict(found.files)
    if folder is not None:
        files |= {name: folder / name for name in NAMES if (folder / name).is_file()}
    return artifact, Inspection(
        source=source,
        kind=artifact.kind,
        runtime=artifact.runtime,
        size=sum(path.stat().st_size for path in files.values()),
        sha256=manifest.entry(found.source).sha256 if found.source.is_file() else "",
        files=[File(name, path.stat().st_size, _role(name, artifact)) for name, path in sorted(files.items())],
        signature=read_signature(files[SIGNATURE]) if SIGNATURE in files else None,
        labels=read_synset(files[SYNSET]) if SYNSET in files else [],
        service=Path(artifact.service).name,
        script=Path(artifact.script).name,
        requirements=_lines(artifact.requirements),
        operators=_operators(artifact),
        native=needs_mxnet(artifact),
        faults=[] if folder is None else manifest.faults(folder, files),
    )


def _operators(artifact: Artifact) -> dict[str, int]:
    path = Path(artifact.path)
    if artifact.kind == "mms archive":
        return operators.of_symbol(find_files(path, artifact.source).symbol)
    if artifact.kind == "onnx":
        return operators.of_onnx(path if path.is_file() else next(path.glob("*.onnx")))
    return {}


def _role(name: str, artifact: Artifact) -> str:
    if artifact.runtime == mar.RUNTIME:
        module = artifact.service.partition(":")[0].removesuffix(".py")
        needs = Path(artifact.requirements).name
        return {mar.MANIFEST: "manifest", f"{module}.py": "handler", needs: "requirements"}.get(name, "")
    known = {SIGNATURE: "signature", SYNSET: "labels", **dict.fromkeys(NAMES, "manifest")}
    for path, role in (
        (artifact.service, "service"),
        (artifact.script, "hooks"),
        (artifact.requirements, "requirements"),
    ):
        if path and Path(path).name == Path(name).name:
            return role
    if artifact.kind == "mms archive":
        endings = {"-symbol.json": "network", ".params": "parameters"}
        return known.get(name) or next((role for ending, role in endings.items() if name.endswith(ending)), "")
    return known.get(name) or ("model" if Path(artifact.path).name == name or name.endswith(".onnx") else "")


def _lines(requirements: str) -> list[str]:
    if not requirements:
        return []
    lines = Path(requirements).read_text("utf-8-sig", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
