"""Models of archives, loaded as a replica loads them, with a service."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import msgspec

from forecastle.messages import Part
from forecastle.models.artifact import open_artifact
from forecastle.replica.executor import Answer, Executor, Job
from forecastle.replica.loading import load_model
from runtimes.archives import jpeg

IMPORTS = """
import numpy as np
from mms.mxnet_model_service import MXNetBaseService
from mms.mxnet_vision_service import MXNetVisionService
from mms.model_service.gluon_vision_service import GluonVisionService
from mms.model_service.model_service import ModelService, SingleNodeService
from mms.utils.mxnet import image, ndarray
"""


class Served:
    """A model of an archive, loaded as a replica loads it, with the service that is given as text or by name."""

    def __init__(self, folder: Path, archive: Path, service: str = "") -> None:
        artifact = open_artifact(str(archive), cache=folder / "cache")
        if "\n" in service:
            (folder / "my.py").write_text(IMPORTS + textwrap.dedent(service))
            service = str(folder / "my.py")
        if service:
            artifact = msgspec.structs.replace(artifact, service=service)
        self.hooks, self.info = load_model(artifact)

    def answers(self, *requests: list[Part], accept: str = "*/*") -> list[Answer]:
        executor = Executor(self.hooks, clock=lambda: 0.0)
        return executor.answer([Job(str(index), parts, accept, 1.0) for index, parts in enumerate(requests)])

    def ask(self, *parts: Part) -> Any:
        (answer,) = self.answers(list(parts))
        if isinstance(answer, tuple):
            return json.loads(answer[0])
        return answer.type, answer.message


def picture(colour: str = "blue", name: str = "input0") -> Part:
    return Part(name, "image/jpeg", jpeg(colour))


def number(text: str, name: str = "input0") -> Part:
    return Part(name, "", text.encode())
