"""From a client's value to an array of a signature's type and shape, checked.

What converts: booleans to numbers, whole numbers between the types as long as they fit, floats to integer types where
they are whole, any number to a float type (one beyond its range becomes infinite, as IEEE rounding says). Nothing else:
no text becomes a number, and null becomes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from forecastle.errors import BadInput
from forecastle.models.signature import Tensor

Array = np.ndarray[Any, Any]

_SHOWN = 40


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy type of a signature's ``dtype``; texts are arrays of objects."""
    return np.dtype(object) if name in {"str", "object"} else np.dtype(name)


def to_array(value: Any, tensor: Tensor) -> tuple[Array, bool]:
    """Turn nested lists, a scalar or an array into an array with the batch axis in front.

    Returns the array and whether the value was a single record, that is of one rank less than the signature's shape. A
    tensor of rank 0 has no batch axis, and its shape is not checked.

    Raises:
        BadInput: the value is ragged, holds what is no number (or no text, for a tensor of texts), does not fit the
            type or the shape, or has no rows; the message names the input and, for an element, its place.
    """
    array = _cast(value if isinstance(value, np.ndarray) else _from_lists(value, tensor), tensor)
    rank = len(tensor.shape)
    if not rank:
        return array, False
    single = array.ndim == rank - 1
    batch = array[None] if single else array
    first, *rest = tensor.shape
    fits = batch.ndim == rank and all(want in {None, got} for want, got in zip(rest, batch.shape[1:], strict=True))
    # A model that takes one row at a time is given several by and by.
    if not fits or (first not in {None, 1, batch.shape[0]}):
        record = f", or {_show(rest)} for one record" if first in {None, 1} else ""
        wanted = _show((None if first == 1 else first, *rest))
        raise BadInput(f"{tensor.name} has shape {_show(array.shape)}; expected {wanted}{record}")
    if not batch.shape[0]:
        raise BadInput(f"{tensor.name} has no rows (shape {_show(array.shape)}); expected at least one")
    return batch, single


def _from_lists(value: Any, tensor: Tensor) -> Array:
    texts = tensor.dtype in {"str", "object"}
    try:
        array = np.array(value, object if texts else None)
        if array.dtype.kind == "f" and numpy_dtype(tensor.dtype).kind in "iu":
            # Numpy makes floats of whole numbers on both sides of 2**63, and loses their last digits.
            whole = np.array(value, object)
            array = whole if _all(whole, texts=False) else array
    except (ValueError, OverflowError, RecursionError):
        array = None
    if array is not None and (array.dtype.kind in "biufc" or (array.dtype == object and _all(array, texts))):
        return array
    wanted = "a text" if texts else "a number"
    for place, leaf in _leaves(value, tensor.name):
        if not isinstance(leaf, str if texts else int | float | complex):
            raise BadInput(f"{place} is {_describe(leaf)}; expected {wanted}")
    raise BadInput(f"{tensor.name} is ragged: lists beside each other in it have different lengths or depths")


def _all(array: Array, texts: bool) -> bool:
    # Numpy keeps whole numbers beyond 64 bits as objects.
    return all(isinstance(leaf, str if texts else int) for leaf in array.flat)


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Walk through nested lists without recursion: a body may be nested deeper than Python likes."""
    stack = [(place, value)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, list | tuple):
            stack.extend((f"{place}[{index}]", value[index]) for index in reversed(range(len(value))))
        else:
            yield place, value


def _cast(array: Array, tensor: Tensor) -> Array:
    dtype, kind = numpy_dtype(tensor.dtype), array.dtype.kind
    if dtype.kind == "O":
        return _texts(array, tensor)
    if kind not in ("biufcO" if dtype.kind == "c" else "biufO"):
        raise BadInput(f"{tensor.name} holds {array.dtype}; expected {tensor.dtype}")
    if array.dtype == dtype:
        return array
    if dtype.kind in "iub":
        _check_whole(array, dtype, tensor)
    try:
        with np.errstate(over="ignore"):
            return array.astype(dtype)
    except OverflowError:
        raise BadInput(f"{tensor.name} holds a whole number beyond the range of {tensor.dtype}") from None


def _check_whole(array: Array, dtype: np.dtype[Any], tensor: Tensor) -> None:
    if array.dtype.kind == "b":  # 0 and 1 fit everywhere; and numpy 2.5 compares them with no large whole number
        return
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if array.dtype.kind == "f":
        # The bounds as floats: 2**63 - 1 has none, and rounds up to one that no longer fits.
        wrong = (array != np.floor(array)) | (array < float(low)) | (array >= float(high) + 1)
    else:
        wrong = (array < low) | (array > high)
    if np.any(wrong):
        index = tuple(int(axis) for axis in np.argwhere(wrong)[0])
        place = tensor.name + "".join(f"[{axis}]" for axis in index)
        raise BadInput(f"{place} is {array[index]}; expected {tensor.dtype}, a whole number from {low} to {high}")


def _texts(array: Array, tensor: Tensor) -> Array:
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise BadInput(f"{tensor.name} holds bytes that are not UTF-8") from None
    if array.dtype.kind not in "UO":
        raise BadInput(f"{tensor.name} holds {array.dtype}; expected texts")
    return array.astype(object)


def _show(shape: Any) -> str:
    return f"({', '.join('any' if size is None else str(size) for size in shape)})"


def _describe(leaf: Any) -> str:
    if leaf is None:
        return "null"
    if isinstance(leaf, bool):
        return str(leaf).lower()
    if isinstance(leaf, dict):
        return "an object"
    text = f"{leaf!r}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
