from __future__ import annotations

import sys

import pytest

from forecastle.errors import LoadFailed
from forecastle.models.artifact import Artifact
from forecastle.runtimes.table import RUNTIMES, open_runtime


@pytest.mark.parametrize(("runtime", "package"), [("onnx", "onnxruntime"), ("mxnet", "onnx")])
def test_a_framework_that_is_not_installed_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, runtime: str, package: str
) -> None:
    for name in [name for name in sys.modules if name.startswith((f"{package}.", "forecastle.runtimes."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LoadFailed, match=rf"'{package}'.*pip install 'forecastle\[{runtime}\]'"):
        open_runtime(Artifact("", runtime, "", ""))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_runtime_opens_without_touching_its_artifact(runtime: str) -> None:
    assert hasattr(open_runtime(Artifact("", runtime, "/nowhere", "nowhere")), "model_fn")
