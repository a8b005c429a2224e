"""The arrays that services are given: numpy's, with what services call on MXNet's."""

from __future__ import annotations

from typing import Any

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
    return np.asarray(value).view(NDArray)
