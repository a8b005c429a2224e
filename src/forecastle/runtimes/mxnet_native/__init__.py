"""MMS archives run by MXNet itself, in a process of an environment that has it.

A network is bound once for each batch size that is needed: 1, 2, 4 and so on. A batch in between is filled up with
copies of its last row, whose outputs are cut off again; no request is made up.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from forecastle.errors import BadArtifact
from forecastle.models import mms
from forecastle.models.artifact import Artifact
from forecastle.models.signature import Signature, Tensor, read_signature
from forecastle.models.synset import read_synset
from forecastle.runtimes.batching import TensorModel
from forecastle.runtimes.convert import Array
from forecastle.runtimes.mxnet_native.library import MXNetError, mx
from forecastle.runtimes.tensor import TensorRuntime

BOUND = 16
"""How many shapes a network stays bound for; each keeps its intermediate results in memory."""

Shapes = tuple[tuple[int, ...], ...]


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of an unpacked MMS archive."""
    return TensorRuntime(lambda: _load(artifact))


def _load(artifact: Artifact) -> TensorModel:
    files = mms.find_files(Path(artifact.path), artifact.source)
    signature = read_signature(files.signature)
    inputs = tuple(msgspec.structs.replace(tensor, dtype="float32") for tensor in signature.inputs)
    try:
        network = Network(str(files.symbol), str(files.params), [tensor.name for tensor in inputs])
        sample = network.run(
            {tensor.name: np.zeros([size or 1 for size in tensor.shape], np.float32) for tensor in inputs}
        )
    except MXNetError as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        raise BadArtifact(f"{artifact.source} cannot be run by MXNet: {reason[:400]}") from None
    signature = msgspec.structs.replace(
        signature, inputs=inputs, outputs=_outputs(signature, network.outputs, sample, artifact.source)
    )
    return TensorModel(signature, network.run, read_synset(files.synset) if files.synset else None)


def _outputs(signature: Signature, names: list[str], sample: list[Array], origin: str) -> tuple[Tensor, ...]:
    if signature.outputs and len(signature.outputs) != len(names):
        raise BadArtifact(
            f"{origin}: signature.json lists {len(signature.outputs)} outputs and the symbol has {len(names)} "
            f"({', '.join(names)}); expected one for each, in the symbol's order"
        )
    return signature.outputs or tuple(
        Tensor(name, (None, *array.shape[1:]), str(array.dtype)) for name, array in zip(names, sample, strict=True)
    )


class Network:
    """A symbol with its parameters. One thread at a time may run it."""

    def __init__(self, symbol: str, params: str, inputs: list[str]) -> None:
        self._symbol = mx.sym.load(symbol)
        self._inputs = inputs
        self._bound: OrderedDict[Shapes, Any] = OrderedDict()
        self.outputs: list[str] = list(self._symbol.list_outputs())
        loaded = mx.nd.load(params)
        named = loaded.items() if isinstance(loaded, dict) else ()
        self._arguments = {key[4:]: value for key, value in named if key.startswith("arg:")}
        self._auxiliary = {key[4:]: value for key, value in named if key.startswith("aux:")}

    def run(self, feed: dict[str, Array]) -> list[Array]:
        """Return the outputs for an array of each input."""
        arrays = [np.asarray(feed[name], np.float32) for name in self._inputs]
        rows = arrays[0].shape[0] if arrays[0].ndim else 1
        bound = 1 << (rows - 1).bit_length()
        if any(array.shape[:1] != (rows,) for array in arrays):
            return self._forward(arrays)  # one has its rows elsewhere, as states of a recurrent network have
        outputs = self._forward([_filled(array, rows, bound) for array in arrays])
        if bound == rows:
            return outputs
        if any(output.shape[:1] != (bound,) and output.shape[0] % bound for output in outputs):
            return self._forward(arrays)  # its outputs are not its inputs' rows: nothing can be cut off
        return [output[: rows * (output.shape[0] // bound)] for output in outputs]

    def _forward(self, arrays: list[Array]) -> list[Array]:
        executor = self._executor(tuple(array.shape for array in arrays))
        for name, array in zip(self._inputs, arrays, strict=True):
            executor.arg_dict[name][:] = array
        return [np.asarray(output.asnumpy()) for output in executor.forward(is_train=False)]

    def _executor(self, shapes: Shapes) -> Any:
        if shapes in self._bound:
            self._bound.move_to_end(shapes)
            return self._bound[shapes]
        wanted = dict(zip(self._inputs, shapes, strict=True))
        if self._bound:
            # Shares the parameters with the others.
            executor = next(reversed(self._bound.values())).reshape(
                partial_shaping=True, allow_up_sizing=True, **wanted
            )
        else:
            executor = self._symbol.simple_bind(mx.cpu(), grad_req="null", **wanted)
            executor.copy_params_from(self._arguments, self._auxiliary, allow_extra_params=True)
        self._bound[shapes] = executor
        if len(self._bound) > BOUND:
            self._bound.popitem(last=False)
        return executor


def _filled(array: Array, rows: int, bound: int) -> Array:
    return array if bound == rows else np.concatenate([array, np.repeat(array[-1:], bound - rows, axis=0)])
