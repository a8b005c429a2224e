"""The arrays that services are given: numpy's, with what services call on MXNet's; or MXNet's, if they import it."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np


class NDArray(np.ndarray[Any, Any]):
    """A numpy array that also answers to the methods of MXNet's arrays which services use.

    An element of it, or a sum, is a numpy scalar, where MXNet has an array of one element.
    """

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Return a copy as a plain numpy array."""
        return np.array(self)

    def asscalar(self) -> Any:
        """Return the only element."""
        return self.item()

    def as_in_context(self, context: Any) -> NDArray:  # noqa: ARG002 -- there is one device
        """Return the array itself: it lies where it is computed with."""
        return self

    def wait_to_read(self) -> None:
        """Return at once: nothing is computed later."""


def array(value: Any) -> NDArray:
    """Return a value as such an array, without a copy where it is an array already."""
    mxnet = sys.modules.get("mxnet")
    if mxnet is None:
        return np.asarray(value).view(NDArray)
    if isinstance(value, mxnet.nd.NDArray):
        return cast(NDArray, value)
    plain_ = np.ascontiguousarray(value)
    return cast(NDArray, mxnet.nd.array(plain_, dtype=plain_.dtype))


def plain(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return a value as an array of numpy's, whoever's it is."""
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value, dtype)
