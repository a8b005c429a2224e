"""PyTorch's programs: TorchScript (``torch.jit.save``) and exported ones (``torch.export.save``).

Both hold code that runs when they do, so they must be the operator's own. What their inputs are is told by an exported
program itself, by the example that a traced one keeps, or by a signature.json beside the file.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch

from forecastle.errors import BadArtifact
from forecastle.models.artifact import Artifact
from forecastle.models.signature import DTYPES, Signature, Tensor
from forecastle.models.torchscript import traced_inputs
from forecastle.runtimes import described
from forecastle.runtimes.batching import Run, TensorModel
from forecastle.runtimes.convert import Array, numpy_dtype
from forecastle.runtimes.tensor import TensorRuntime
from forecastle.runtimes.threads import threads

logger = logging.getLogger(__name__)

_SHOWN = 300


class _Program(NamedTuple):
    """What is called, its inputs as far as they are known, and an example of them."""

    call: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    sample: list[Any] | None


def open(artifact: Artifact) -> TensorRuntime:  # noqa: A001 -- the name that every runtime's module has
    """Return the hooks of a program."""
    return TensorRuntime(lambda: _load(artifact))


def _load(artifact: Artifact) -> TensorModel:
    torch.set_num_threads(threads())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's opinion of its own older formats
            program = _exported(artifact.path) if artifact.kind == "torch export" else _scripted(artifact.path)
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        raise BadArtifact(f"{artifact.source} cannot be loaded by PyTorch: {_first(error)}") from None
    path = Path(artifact.path)
    given = described.stated(path)
    if given is not None:
        if program.sample is None:
            program = program._replace(sample=_zeros(given.inputs))
        given = described.checked(given, len(program.inputs), len(given.outputs), artifact.source)
        program = program._replace(inputs=given.inputs)
    signature = Signature(program.inputs, _outputs(program, artifact.source))
    if given is not None:
        outputs = described.checked(given, len(program.inputs), len(signature.outputs), artifact.source).outputs
        signature = msgspec.structs.replace(given, outputs=outputs or signature.outputs)
    if any(not tensor.shape for tensor in signature.inputs):
        logger.warning("the program does not say what shape its inputs have: its requests run one by one; state it in "
                       "a signature.json beside the file")  # fmt: skip
    return TensorModel(signature, _run(program), described.labels(path))


def _scripted(path: str) -> _Program:
    module = torch.jit.load(path, map_location="cpu").eval()
    arguments = module.forward.schema.arguments[1:]
    traced = traced_inputs(Path(path))
    if traced is None or len(traced) != len(arguments):
        return _Program(module, tuple(Tensor(argument.name, ()) for argument in arguments), None)
    inputs = tuple(
        msgspec.structs.replace(tensor, name=argument.name) for argument, tensor in zip(arguments, traced, strict=True)
    )
    return _Program(module, inputs, _zeros(inputs))


def _exported(path: str) -> _Program:
    program = torch.export.load(path)
    module = program.module()
    names = list(program.graph_signature.user_inputs)
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    inputs = tuple(_tensor(name, values[name].dtype, values[name].shape) for name in names)
    positional, named = program.example_inputs or ([None] * len(names), {})
    keys = list(named)

    def call(*tensors: Any) -> Any:
        return module(*tensors[: len(positional)], **dict(zip(keys, tensors[len(positional) :], strict=True)))

    sample = [*positional, *named.values()]
    return _Program(call, inputs, None if any(value is None for value in sample) else sample)


def _zeros(inputs: tuple[Tensor, ...]) -> list[Any]:
    return [torch.zeros([size or 1 for size in tensor.shape], dtype=getattr(torch, tensor.dtype)) for tensor in inputs]


def _tensor(name: str, dtype: Any, shape: Any) -> Tensor:
    return Tensor(name, tuple(size if isinstance(size, int) else None for size in shape), _dtype(dtype))


def _dtype(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    return name if name in DTYPES else "float32"


def _outputs(program: _Program, origin: str) -> tuple[Tensor, ...]:
    if program.sample is None:
        return ()
    try:
        found = _named(_call(program.call, program.sample))
    except (RuntimeError, ValueError, TypeError) as error:
        raise BadArtifact(f"{origin} does not run on its own example: {_first(error)}") from None
    rows = program.sample[0].shape[0] if program.sample and program.sample[0].ndim else None
    return tuple(described.output(name, array, rows) for name, array in found.items())


def _run(program: _Program) -> Run:
    types = [numpy_dtype(tensor.dtype) for tensor in program.inputs]

    def run(feed: dict[str, Array]) -> list[Array]:
        tensors = [
            torch.from_numpy(np.require(feed[tensor.name], dtype, ["C", "W"]))
            for tensor, dtype in zip(program.inputs, types, strict=True)
        ]
        return list(_named(_call(program.call, tensors)).values())

    return run


def _call(call: Callable[..., Any], tensors: list[Any]) -> Any:
    with torch.inference_mode():
        return call(*tensors)


def _named(result: Any) -> dict[str, Array]:
    """Turn what a program returned into arrays by name: one tensor, several, or a dict of them."""
    if isinstance(result, torch.Tensor):
        return {"output": _array(result)}
    if isinstance(result, dict):
        return {str(name): _array(value) for name, value in result.items()}
    return {f"output{index}": _array(value) for index, value in enumerate(result)}


def _array(tensor: Any) -> Array:
    if not isinstance(tensor, torch.Tensor):
        return np.asarray(tensor)
    return np.asarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach().numpy())


def _first(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:_SHOWN]
