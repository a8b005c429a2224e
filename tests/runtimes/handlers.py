"""Archives of MMS 1.x and TorchServe, and what answers them when they are loaded as a replica loads them."""

from __future__ import annotations

import json
import textwrap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forecastle.hooks.current import CurrentRequest
from forecastle.messages import Part
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Answer, Executor, Job
from forecastle.replica.loading import load_model


def manifest(handler: str = "service:handle", **more: Any) -> bytes:
    """A manifest as MMS's archiver writes it."""
    document = {
        "runtime": "python",
        "model": {"modelName": "noop", "handler": handler, **more},
        "modelServerVersion": "1.0",
        "implementationVersion": "1.0",
        "specificationVersion": "1.0",
    }
    return json.dumps(document).encode()


def make_mar(path: Path, files: Mapping[str, str | bytes], handler: str = "service:handle", **more: Any) -> Path:
    """Write an archive with these files and a manifest."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", manifest(handler, **more))
        for name, content in files.items():
            archive.writestr(name, textwrap.dedent(content) if isinstance(content, str) else content)
    return path


class Handled:
    """A handler, loaded; ``service`` is the content of ``service.py``, ``files`` are others."""

    def __init__(
        self,
        folder: Path,
        service: str,
        handler: str = "service:handle",
        *,
        batch_size: int = -1,
        files: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        archive = make_mar(folder / "noop.mar", {"service.py": service, **(files or {})}, handler, **more)
        artifact = open_artifact(str(archive), cache=folder / "cache")
        self.hooks, self.info = load_model(artifact, name="noop", batch_size=batch_size)
        self.requests: list[CurrentRequest] = []

    def answers(self, *requests: list[Part], headers: Mapping[str, str] | None = None) -> list[Answer]:
        """Answer a batch; ``requests`` are then what the replies have besides their bodies."""
        self.requests = [CurrentRequest(f"r{index}", headers or {}) for index in range(len(requests))]
        jobs = [
            Job(request.id, parts, "*/*", 1.0, request=request)
            for request, parts in zip(self.requests, requests, strict=True)
        ]
        return Executor(self.hooks, clock=lambda: 0.0).answer(jobs)

    def ask(self, *parts: Part) -> Any:
        """Return the body and content type of one answer, or the status and message of an error."""
        (answer,) = self.answers(list(parts))
        return answer if isinstance(answer, tuple) else (answer.status, answer.message)
