"""The attributes of a node: strings as MXNet writes them, read as what an operator expects.

MXNet writes ``"(3, 3)"``, ``"True"``, ``"1e-05"``, ``"None"``; Python 2 wrote ``"(3L, 3L)"``. Which attributes have
been read is remembered, so that one nobody looked at, which might change the answer, can be refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LIST = re.compile(r"\s*[\[(]?([^\[\]()]*)[\])]?\s*")
# Attributes that do not change what a trained network answers: for training, for the choice of an implementation, or
# told by the inputs as well. ``dtype`` is among them because everything is computed in float32.
_HARMLESS = frozenset(
    [
        *("workspace", "cudnn_tune", "cudnn_off", "ctx", "ndev", "key", "is_int", "dtype", "forward_stype"),
        *("momentum", "use_global_stats", "min_calib_range", "max_calib_range"),
        *("num_args", "num_filter", "num_hidden", "no_bias", "input_dim", "output_dim", "multi_input_mode"),
        *("grad_scale", "ignore_label", "use_ignore", "normalization", "out_grad", "smooth_alpha", "valid_thresh"),
        *("p", "regularization", "penalty", "sparseness_target", "sparse_grad"),
    ]
)


class Unsupported(Exception):
    """A converter cannot express what the node asks for; the importer gathers these and refuses the model."""


class Attributes:
    """Typed readers of one node's attributes. A value of the wrong form raises `ValueError`."""

    def __init__(self, raw: Mapping[str, str]) -> None:
        self._raw = raw
        self._read: set[str] = set()

    def text(self, name: str, default: str | None = None) -> str:
        """The attribute as it is; without ``default`` it must be there."""
        self._read.add(name)
        found = self._raw.get(name, default)
        if found is None:
            raise ValueError(f"the attribute {name!r} is missing")
        return found

    def has(self, name: str) -> bool:
        """Whether it is set to anything but ``None``."""
        return self.text(name, "None") not in {"None", ""}

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number."""
        found = self.text(name, None if default is None else str(default))
        try:
            return int(found.strip("() ,L"))
        except ValueError:
            raise ValueError(f"the attribute {name!r} is {found!r}, not a whole number") from None

    def number(self, name: str, default: float | None = None) -> float:
        """A number."""
        found = self.text(name, None if default is None else repr(default))
        try:
            return float(found)
        except ValueError:
            raise ValueError(f"the attribute {name!r} is {found!r}, not a number") from None

    def flag(self, name: str, default: bool = False) -> bool:
        """True or False."""
        found = self.text(name, str(default)).strip().lower()
        if found not in {"true", "false", "1", "0"}:
            raise ValueError(f"the attribute {name!r} is {found!r}, neither True nor False")
        return found in {"true", "1"}

    def optional_integers(self, name: str) -> tuple[int | None, ...]:
        """A list of whole numbers, any of which may be ``None``; empty where it is not set."""
        if not self.has(name):
            return ()
        return tuple(None if item == "None" else self._whole(name, item) for item in self._items(name))

    def integers(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """A list of whole numbers; one number alone is a list of one. ``default`` where it is not set or empty."""
        if not self.has(name):
            return default
        return tuple(self._whole(name, item) for item in self._items(name)) or default

    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """A list of numbers."""
        if not self.has(name):
            return default
        try:
            return tuple(float(item) for item in self._items(name)) or default
        except ValueError:
            raise ValueError(f"the attribute {name!r} is {self.text(name)!r}, not a list of numbers") from None

    def only(self, name: str, *allowed: str) -> None:
        """Refuse any value but these; not being set is always allowed."""
        if self.has(name) and (found := self.text(name)) not in allowed:
            raise Unsupported(f"{name}={found}")

    def refuse_unread(self) -> None:
        """Refuse what no reader has asked for, unless it is known to be without effect."""
        for name in self._raw:
            if not (name in self._read or name in _HARMLESS or name.startswith("__")):
                raise Unsupported(f"{name}={self._raw[name]}")

    def _items(self, name: str) -> list[str]:
        match = _LIST.fullmatch(self.text(name))
        if match is None:
            raise ValueError(f"the attribute {name!r} is {self.text(name)!r}, not a list")
        return [item.strip() for item in match.group(1).split(",") if item.strip()]

    def _whole(self, name: str, item: str) -> int:
        try:
            return int(item.removesuffix("L"))
        except ValueError:
            raise ValueError(f"the attribute {name!r} is {self.text(name)!r}, not a list of whole numbers") from None


def format_attribute(value: object) -> str:
    """A Python value as MXNet writes it."""
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(str, value)) + ("," if len(value) == 1 else "") + ")"
    return str(value)
