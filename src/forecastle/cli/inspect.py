"""``forecastle inspect``: what an archive or a model's file is, and whether it will run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from forecastle.cli import artifacts, sources, table, values
from forecastle.cluster.specs import default_cache_dir
from forecastle.cluster.trial import failure, try_as_served
from forecastle.models import mar
from forecastle.models.export import PATIENCE
from forecastle.models.inspection import Inspection
from forecastle.models.inspection import inspect as look
from forecastle.models.signature import Signature
from forecastle.models.trial import Trial

_Duration = Annotated[float, Parameter(converter=sources.reads(values.duration), show_default="{:g}s".format)]
_MOST_FILES = 100


def inspect(
    source: str,
    *,
    load: Annotated[bool | None, Parameter(negative="--no-load")] = None,
    json: bool = False,
    start_timeout: _Duration = PATIENCE,
    cache_dir: Path | None = None,
) -> int:
    """Say what a model is: its files, signature, runtime, requirements, size, operators, and whether it will run.

    A model that is data alone is loaded, in a process of its own. One whose loading runs code that it brings, or that
    has requirements to install, is loaded only when --load says so. The exit code is 1 for a model that cannot be
    loaded, or whose files are not those of its manifest.

    Args:
        source: An archive, a folder, a model's file, a Python file with hooks, a module, or a URL of these.
        load: Load the model whatever it is made of; --no-load looks at its files alone.
        json: Print JSON.
        start_timeout: How long the model may take to load.
        cache_dir: Where downloads and unpacked archives are kept (default: ~/.cache/forecastle).
    """
    cache = default_cache_dir() if cache_dir is None else cache_dir.expanduser()
    with artifacts.shown() as progress:
        artifact, found = look(source, cache=cache, progress=progress)
        tries = found.is_data if load is None else load
        trial = None
        if tries:
            trial = try_as_served(Path(source).stem, artifact, cache=cache, progress=progress, patience=start_timeout)
    if json:
        sys.stdout.write(f"{_document(found, trial)}\n")
    else:
        _show(found, trial)
    return 1 if found.faults or (trial is not None and trial.error) else 0


def _document(found: Inspection, trial: Trial | None) -> str:
    runs = None if trial is None else not trial.error
    reason = "" if trial is None or not trial.error else failure(trial, found.source).message
    document = {
        **msgspec.to_builtins(found),
        "signature": msgspec.to_builtins(_signature(found, trial)),
        "runs": runs,
        "reason": reason,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _show(found: Inspection, trial: Trial | None) -> None:
    out = sys.stdout
    table.draw(("property", "value"), [row for row in _properties(found, trial) if row[1]], out)
    signature = _signature(found, trial)
    if signature is not None:
        out.write("\n")
        table.draw(("tensor", "name", "shape", "type", "content"), _tensors(signature), out)
    if found.files:
        out.write("\n")
        rows = [(file.name, str(file.size), file.role or "-") for file in found.files[:_MOST_FILES]]
        if len(found.files) > _MOST_FILES:
            rows.append((f"and {len(found.files) - _MOST_FILES} more", "", ""))
        table.draw(("file", "bytes", "what"), rows, out)


def _properties(found: Inspection, trial: Trial | None) -> list[tuple[str, str]]:
    labels = f"{len(found.labels)}, the first is {found.labels[0]!r}" if found.labels else ""
    return [
        ("source", found.source),
        ("kind", found.kind),
        ("runtime", "service" if found.service and found.runtime != mar.RUNTIME else found.runtime),
        ("size", f"{found.size / 1e6:.1f} MB in {len(found.files)} files" if found.files else ""),
        ("sha256", found.sha256),
        ("handler" if found.runtime == mar.RUNTIME else "service", found.service),
        ("hooks", found.script),
        ("labels", labels),
        ("requirements", ", ".join(found.requirements)),
        ("operators", ", ".join(f"{name} {count}" for name, count in found.operators.items())),
        ("manifest", "; ".join(found.faults) or ("the files are those that it names" if _has_manifest(found) else "")),
        ("runs", _verdict(found, trial)),
    ]


def _has_manifest(found: Inspection) -> bool:
    return any(file.role == "manifest" for file in found.files)


def _verdict(found: Inspection, trial: Trial | None) -> str:
    if trial is None:
        return "not tried" if found.is_data else f"not tried, since {found.hindrance}; --load tries it"
    if trial.error:
        return f"no: {' '.join(failure(trial, found.source).message.split())}"
    return f"yes, it loads in {trial.seconds:.1f} s"


def _signature(found: Inspection, trial: Trial | None) -> Signature | None:
    """What the model itself says where it was loaded, else what lies beside it."""
    return trial.signature if trial is not None and trial.signature is not None else found.signature


def _tensors(signature: Signature) -> list[tuple[str, ...]]:
    return [
        (what, tensor.name, str([size or 0 for size in tensor.shape]) if tensor.shape else "any", tensor.dtype, content)
        for what, tensors, content in (
            ("input", signature.inputs, signature.input_type),
            ("output", signature.outputs, signature.output_type),
        )
        for tensor in tensors
    ]
