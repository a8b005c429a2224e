"""Between a service's steps: what one of them gave, held against the signature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from forecastle.errors import BadInput, BadOutput
from forecastle.models.signature import Tensor
from forecastle.runtimes.convert import Array, to_array
from forecastle.runtimes.service.arrays import plain
from forecastle.runtimes.service.nlp import DataBatch


def check_count(values: Any, tensors: Sequence[Any], what: str = "outputs") -> None:
    """Check that there is a value for each tensor.

    Raises:
        BadOutput: it is no list, or one of another length.
    """
    if not isinstance(values, list | tuple):
        raise BadOutput(f"the service made {type(values).__name__} of its {what}; expected a list of {len(tensors)}")
    if len(values) != len(tensors):
        raise BadOutput(f"the service made {len(values)} {what}; expected {len(tensors)}, as the signature has")


def fitted(data: Any, inputs: Sequence[Tensor]) -> dict[str, Array]:
    """Return an array for each input by name, of its type and with a batch axis.

    A lone array counts as the only input. An array without the batch axis gets one; a picture whose channels come last,
    as pictures are read, is turned where only so it fits.

    Raises:
        BadOutput: there are more or fewer arrays than inputs, or one does not fit.
    """
    if isinstance(data, DataBatch):
        data = data.data
    lone = hasattr(data, "asnumpy") or isinstance(data, np.ndarray) or not isinstance(data, Iterable)
    values = [data] if lone else list(data)
    check_count(values, inputs, "inputs")
    return {tensor.name: _fitted(value, tensor) for value, tensor in zip(values, inputs, strict=True)}


def _fitted(value: Any, tensor: Tensor) -> Array:
    array = plain(value) if hasattr(value, "shape") else value
    if isinstance(array, np.ndarray) and array.ndim == 3 and len(tensor.shape) == 4:
        turned = array.transpose(2, 0, 1)
        if not _fits(array, tensor) and _fits(turned, tensor):
            array = turned
    try:
        return np.ascontiguousarray(to_array(array, tensor)[0])
    except BadInput as error:
        raise BadOutput(f"what the service made of the input does not fit the model: {error.message}") from None


def _fits(array: Array, tensor: Tensor) -> bool:
    return all(want in {None, got} for want, got in zip(tensor.shape[1:], array.shape, strict=True))
