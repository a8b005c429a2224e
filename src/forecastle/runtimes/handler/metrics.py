"""A handler's own metrics: each is a line of the model's log, as MMS 1.x writes them.

``[METRICS]NAME.UNIT:VALUE|#NAME:VALUE,…|#requestID:ID``
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from forecastle.errors import PredictionFailed

logger = logging.getLogger(__name__)

TIMES = {"ms": "Milliseconds", "s": "Seconds"}
SIZES = {"MB": "Megabytes", "kB": "Kilobytes", "GB": "Gigabytes", "B": "Bytes"}


class Metrics:
    """What ``context.metrics`` is; ``request_ids`` are those of the batch at hand, by index.

    ``dimensions`` are a mapping, or objects with ``name`` and ``value``. Counters add up within one request.
    """

    def __init__(self, model_name: str, request_ids: Mapping[int, str]) -> None:
        self._model = model_name
        self._ids = request_ids
        self._counters: dict[tuple[str, str, str], float] = {}

    def add_counter(self, name: str, value: float, idx: int | None = None, dimensions: Any = None) -> None:
        """Count something."""
        key = name, self._request(idx), _listed(dimensions)
        self._counters[key] = self._counters.get(key, 0) + value
        self._write(name, "Count", self._counters[key], idx, dimensions)

    def add_time(
        self, name: str, value: float, idx: int | None = None, unit: str = "ms", dimensions: Any = None
    ) -> None:
        """Tell a duration, in ``ms`` or ``s``.

        Raises:
            PredictionFailed: the unit is another one.
        """
        self._write(name, _unit(unit, TIMES, name), value, idx, dimensions)

    def add_size(
        self, name: str, value: float, idx: int | None = None, unit: str = "MB", dimensions: Any = None
    ) -> None:
        """Tell a size, in ``B``, ``kB``, ``MB`` or ``GB``.

        Raises:
            PredictionFailed: the unit is another one.
        """
        self._write(name, _unit(unit, SIZES, name), value, idx, dimensions)

    def add_percent(self, name: str, value: float, idx: int | None = None, dimensions: Any = None) -> None:
        """Tell a share in percent."""
        self._write(name, "Percent", value, idx, dimensions)

    def add_error(self, name: str, value: Any, dimensions: Any = None) -> None:
        """Tell an error in words."""
        self._write(name, "", value, None, {**_pairs(dimensions), "Level": "Error"})

    def add_metric(
        self, name: str, value: float, idx: int | None = None, unit: str = "", dimensions: Any = None
    ) -> None:
        """Tell anything else."""
        self._write(name, unit, value, idx, dimensions)

    def enter(self) -> None:
        """Begin another batch: its counters begin at nothing."""
        self._counters.clear()

    def _request(self, idx: int | None) -> str:
        if idx is not None:
            return self._ids.get(idx, "")
        return ",".join(self._ids.values())

    def _write(self, name: str, unit: str, value: Any, idx: int | None, dimensions: Any) -> None:
        given = _pairs(dimensions)
        given.setdefault("Level", "Model")
        given.setdefault("ModelName", self._model)
        label = f"{name}.{unit}" if unit else name
        logger.info("[METRICS]%s:%s|#%s|#requestID:%s", label, value, _listed(given), self._request(idx))


def _pairs(dimensions: Any) -> dict[str, Any]:
    if dimensions is None:
        return {}
    if isinstance(dimensions, Mapping):
        return dict(dimensions)
    return {each.name: each.value for each in dimensions}


def _listed(dimensions: Any) -> str:
    return ",".join(f"{name}:{value}" for name, value in _pairs(dimensions).items())


def _unit(unit: str, units: Mapping[str, str], name: str) -> str:
    if unit not in units:
        raise PredictionFailed(f"the metric {name!r} has the unit {unit!r}; expected one of {', '.join(units)}")
    return units[unit]
