"""Making an archive: its files are put together, tried as a server would load them, and only then written."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from forecastle.cluster.trial import failure, try_as_served, try_model
from forecastle.errors import InstallFailed, LoadFailed, UsageError
from forecastle.models import descriptions, manifest, mar, mms, operators
from forecastle.models.archive import write_archive
from forecastle.models.artifact import REQUIREMENTS, Artifact, recognise_directory
from forecastle.models.engines import NATIVE
from forecastle.models.export import Gathered, Order, check_read, collect, gather, stage
from forecastle.models.fetch import local_path
from forecastle.models.manifest import Entry, Manifest
from forecastle.models.mms import MANIFEST, SIGNATURE, SYNSET
from forecastle.models.module import is_module
from forecastle.models.partial import partial_directory
from forecastle.models.progress import Progress, silent
from forecastle.models.services import defines_service, read_manifest
from forecastle.models.signature import Signature, format_signature, parse_signature
from forecastle.models.synset import read_synset
from forecastle.models.trial import Trial

_UNTRIED = Trial()


class Exported(msgspec.Struct, frozen=True):
    """The archive that was written: its files, what it is, and what the one who ordered it should know."""

    path: Path
    kind: str
    signature: Signature | None
    entries: dict[str, Entry]
    notes: tuple[str, ...]


def export(order: Order, *, cache: Path, progress: Progress = silent) -> Exported:
    """Write the archive. Blocks while it reads, downloads, loads the model and writes.

    Raises:
        UsageError: the target is there already, the source is a module, or a file that is given would not be read.
        StartError: the source cannot be found, its parts contradict each other, or the model cannot be loaded.
    """
    target = order.target.expanduser().absolute()
    if target.is_dir():
        raise UsageError(f"{order.target} is a folder; name a file in it")
    if target.exists() and not order.force:
        raise UsageError(f"{order.target} is there already; write over it with --force, or choose another place")
    if is_module(order.source) and not local_path(order.source).exists():
        raise UsageError(f"{order.source} is an installed module, which needs no archive; name its file or its folder")
    gathered = gather(order, target, cache=cache, progress=progress)
    with partial_directory(target.parent) as partial:
        folder = partial / "stage"
        stage(gathered.files, folder)
        return _Work(order, gathered, folder, cache, progress).finish(target)


class _Work:
    """One export, from its files put together in ``stage`` to the archive."""

    def __init__(self, order: Order, gathered: Gathered, folder: Path, cache: Path, progress: Progress) -> None:
        self.order = order
        self.gathered = gathered
        self.stage = folder
        self.cache = cache
        self.progress = progress
        self.notes: list[str] = []
        names = [name for name in gathered.files if "/" not in name]
        self.is_mms = mms.is_mms(names) and not any(name.endswith(".onnx") for name in names)
        self.before = read_manifest(gathered.folder) if self.is_mms and gathered.folder else {}

    def finish(self, target: Path) -> Exported:
        """Check everything, then write."""
        self._check_options()
        derived = self.is_mms and self._describe_mms()
        artifact = self._recognised()
        self._check_read(artifact)
        trial = self._tried(artifact) if self.order.check else _UNTRIED
        signature = self._signature(artifact, trial, derived=derived)
        self._check_labels(artifact, trial.signature or signature)
        files = collect(self.stage, target)
        entries = manifest.digests(files)
        name, data = self._manifest(artifact, entries)
        self._write(name, data)
        write_archive(target, {**files, name: self.stage / name})
        return Exported(target, artifact.kind, signature or trial.signature, entries, tuple(self.notes))

    def _check_options(self) -> None:
        order = self.order
        for option, given in (("--service", order.service), ("--shape", order.shapes)):
            if given and not self.is_mms:
                raise UsageError(f"{option} is for MXNet models, and {order.source} is none")
        if order.service is not None and not defines_service(order.service, str(order.service.parent)):
            raise UsageError(f"{order.service} defines no service class; expected one derived from MXNetBaseService")

    def _describe_mms(self) -> bool:
        """See that symbol and parameters belong together; where there is no signature make one, and say so."""
        order = self.order
        mms.find_files(self.stage, order.source, described=False)
        if (self.stage / SIGNATURE).is_file():
            if order.shapes:
                raise UsageError(f"--shape is for a model without a signature, and {order.source} has {SIGNATURE}")
            parse_signature((self.stage / SIGNATURE).read_bytes(), self._named(SIGNATURE, order.signature))
            return False
        if order.shapes:
            signature = descriptions.of_shapes(order.shapes)
        else:
            artifact = Artifact("mms archive", "mxnet", str(self.stage), order.source)
            trial = try_model(artifact, derive=True, patience=order.patience)
            if trial.signature is None:
                raise failure(trial, order.source)
            signature = trial.signature
            self.notes.append(f"{order.source} has no {SIGNATURE}; the archive's was derived from the network")
        self._write(SIGNATURE, format_signature(signature))
        return True

    def _recognised(self) -> Artifact:
        single = self.gathered.single
        if single is not None and single.kind == "hook file":
            needs = self.stage / REQUIREMENTS
            place = self.stage / Path(single.path).name
            return msgspec.structs.replace(single, path=str(place), requirements=str(needs) if needs.is_file() else "")
        before = {"Model": {"Service": self.order.service.name}} if self.order.service else self.before
        if before:
            self._write(MANIFEST, msgspec.json.encode(before))
        artifact = recognise_directory(self.stage, self.order.source)
        (self.stage / MANIFEST).unlink(missing_ok=True)
        return artifact

    def _check_read(self, artifact: Artifact) -> None:
        for name, given in ((SIGNATURE, self.order.signature), (SYNSET, self.order.synset)):
            if given is not None:
                check_read(name, artifact.kind, self.order.source)

    def _tried(self, artifact: Artifact) -> Trial:
        """Load the model, then its service if it has one; what comes back is what the model itself says."""
        order = self.order
        # There is no model below a handler.
        model = artifact if artifact.runtime == mar.RUNTIME else msgspec.structs.replace(artifact, service="")
        trial = self._loaded(model)
        if model != artifact and not trial.error:
            served = self._loaded(artifact)
            trial = served if served.error else trial
        if not trial.error:
            return trial
        if trial.missing and order.lenient and artifact.runtime == "mxnet":
            trial = try_model(msgspec.structs.replace(artifact, runtime=NATIVE), patience=order.patience)
            if not trial.error:
                return trial
        if trial.missing and order.lenient:
            self.notes.append(f"the model was not loaded to check it: {trial.message}")
            return _UNTRIED
        error = failure(trial, order.source)
        if isinstance(error, LoadFailed):
            error = LoadFailed(f"nothing was written (--no-check writes an archive all the same): {error.message}")
        raise error

    def _loaded(self, artifact: Artifact) -> Trial:
        try:
            return try_as_served(
                self.order.name, artifact, cache=self.cache, progress=self.progress, patience=self.order.patience
            )
        except InstallFailed as error:
            return Trial(error="LoadFailed", message=error.message, missing=True)

    def _signature(self, artifact: Artifact, trial: Trial, *, derived: bool) -> Signature | None:
        """Write the signature as MMS reads it, or that of an ONNX model that has none."""
        place = self.stage / SIGNATURE
        if place.is_file() and artifact.kind in {"mms archive", "onnx"}:
            origin = self._named(SIGNATURE, self.order.signature)
            outputs = trial.signature.outputs if trial.signature else ()
            data, changes = descriptions.completed(place.read_bytes(), origin, outputs)
            self.notes += [] if derived else changes
            self._write(SIGNATURE, data)
            return parse_signature(data, origin)
        if artifact.kind == "onnx" and trial.signature is not None:
            signature = descriptions.described(trial.signature)
            if descriptions.can_be_written(signature):
                self._write(SIGNATURE, format_signature(signature))
                return signature
        return None

    def _check_labels(self, artifact: Artifact, signature: Signature | None) -> None:
        """Labels are the names of an output's scores; a service knows for itself what they are for."""
        place = self.stage / SYNSET
        if place.is_file() and not artifact.service:
            labels = read_synset(place)
            outputs = signature.outputs if signature else ()
            descriptions.check_labels(labels, outputs, self._named(SYNSET, self.order.synset))

    def _manifest(self, artifact: Artifact, entries: dict[str, Entry]) -> tuple[str, bytes]:
        name = self.order.name
        if artifact.kind == "mms archive":
            files = mms.find_files(self.stage, self.order.source)
            service, engine = Path(artifact.service).name, operators.mxnet_version(files.symbol)
            return MANIFEST, manifest.write_mms(
                name, files, entries, service=service, engine=engine, before=self.before
            )
        file = Path(artifact.path).name if Path(artifact.path).is_file() else ""
        return manifest.FILE, manifest.write(Manifest(name, artifact.kind, artifact.runtime, file, entries))

    def _named(self, name: str, given: Path | None) -> str:
        return f"{name} of {self.order.source}" if given is None else str(given)

    def _write(self, name: str, data: bytes) -> None:
        # A file in the stage may be the user's own under a second name: it is replaced, never written to.
        with contextlib.suppress(FileNotFoundError):
            (self.stage / name).unlink()
        (self.stage / name).write_bytes(data)
