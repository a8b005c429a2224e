"""From an artifact to a loaded model: find the hooks, open the runtime, call ``model_fn``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pluggy

from forecastle.hooks import discover
from forecastle.hooks.resolve import Hooks, load
from forecastle.hooks.toolkit import Context
from forecastle.hooks.toolkit_codecs import ToolkitDefaults
from forecastle.models import platform
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature
from forecastle.replica.wire import Info
from forecastle.runtimes.table import open_runtime


def load_model(artifact: Artifact, *, name: str = "", batch_size: int = -1) -> tuple[Hooks, Info]:
    """Load the artifact's model and say what it is. Any exception is the reason why it cannot be served.

    ``name`` and ``batch_size`` are how it is served; a runtime that wants to know has ``serve_as(name, batch_size)``.
    """
    runtime = None if artifact.runtime == "script" else open_runtime(artifact)
    serve_as: Callable[[str, int], None] | None = getattr(runtime, "serve_as", None)
    if serve_as is not None:
        serve_as(name, batch_size)
    fallback = ToolkitDefaults() if artifact.script else None
    hooks = load(_hooks(artifact), runtime, _model_dir(artifact), fallback)
    signature: Signature | None = getattr(runtime, "signature", None)
    info = Info(
        runtime=getattr(runtime, "name", artifact.runtime),
        signature=signature,
        batch_strategy=hooks.batch_strategy.value,
        max_concurrent_transforms=hooks.max_concurrent_transforms,
        max_payload_in_mb=hooks.max_payload_in_mb,
        together=hooks.predict_batch is not None,
        pings=hooks.ping is not None,
    )
    return hooks, info


def _hooks(artifact: Artifact) -> pluggy.PluginManager:
    if artifact.kind == "module":
        return discover.from_module(artifact.path)
    if artifact.kind == "hook file":
        return discover.from_file(Path(artifact.path))
    if artifact.kind == "plugins":
        return discover.from_entry_points()
    if artifact.script:
        return discover.from_file(Path(artifact.script), Context(_model_dir(artifact)))
    return discover.new_manager()


def _model_dir(artifact: Artifact) -> str:
    """Say which directory ``model_fn`` gets: the artifact's own, a hook file's folder, else SageMaker's."""
    if artifact.kind in {"module", "plugins"}:
        return str(platform.model_dir())
    path = Path(artifact.path)
    return str(path if path.is_dir() else path.parent)
