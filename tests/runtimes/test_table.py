from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from forecastle.errors import LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.runtimes.table import RUNTIMES, open_runtime

ELSEWHERE = {"keras", "mxnet_native"}
"""Of these the one has no framework of its own, and the other runs in environments that have it."""

FRAMEWORKS = {"onnx": "onnxruntime", "mxnet": "onnx", "keras": "torch", "mxnet_native": "mxnet"}


@pytest.mark.parametrize(
    ("runtime", "package"), [*((name, FRAMEWORKS.get(name, name)) for name in RUNTIMES if name not in ELSEWHERE)]
)
def test_a_framework_that_is_not_installed_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, runtime: str, package: str
) -> None:
    for name in [name for name in sys.modules if name.startswith((f"{package}.", "forecastle.runtimes."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LoadFailed, match=rf"'{package}'.*pip install 'forecastle\[{runtime}\]'"):
        open_runtime(Artifact("", runtime, "", ""))


@pytest.mark.parametrize("runtime", [name for name in RUNTIMES if find_spec(FRAMEWORKS.get(name, name))])
def test_every_runtime_opens_without_touching_its_artifact(runtime: str) -> None:
    assert hasattr(open_runtime(Artifact("", runtime, "/nowhere", "nowhere")), "model_fn")
