from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["forecastle.replica.process", "forecastle.cli"])
def test_neither_server_nor_replica_imports_a_framework_that_its_model_does_not(module: str) -> None:
    heavy = ["numpy", "onnx", "onnxruntime", "PIL"]
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
