"""Run what the importer makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from forecastle.runtimes.mxnet.importer import to_onnx
from forecastle.runtimes.mxnet.symbol import SymbolBuilder

Array = npt.NDArray[Any]


def run(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a valid model, by name."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feed = {name: np.asarray(value, np.float32) for name, value in inputs.items()}
    return dict(zip(names, session.run(None, feed), strict=True))


def one_node(op: str, data: Array, params: Mapping[str, Array] | None = None, /, **attributes: object) -> Array:
    """What a single operator gives for ``data`` (any batch) and parameters, which follow it in their order."""
    builder = SymbolBuilder()
    inputs = [builder.variable("data"), *(builder.variable(name.partition(":")[2]) for name in params or {})]
    symbol = builder.write(builder.op(op, "node", inputs, **attributes))
    model = to_onnx(symbol, params or {}, {"data": (None, *data.shape[1:])})
    (output,) = run(model, {"data": data}).values()
    return output
