"""Metrics as users of MMS know them: written now and then, to the log or to files of comma-separated values.

For each model that had requests since the last time: ``PredictionTotal``, ``Prediction4XX`` and ``Prediction5XX``
(counts), ``LatencyQueue`` and ``LatencyInference`` (milliseconds, the mean of a request's and of a batch's). In CSV,
``<model>_<metric>.csv`` has a line ``2026-01-31 12:00:00Z, value`` for each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from forecastle.http.core import Core
from forecastle.http.stats import HttpStats
from forecastle.serving.stats import Histogram

logger = logging.getLogger("forecastle.metrics")

EVERY_SECONDS = 60.0
FOLDER = Path("metrics")


class Metric(NamedTuple):
    """One number about one model since the last time."""

    model: str
    name: str
    value: float
    unit: str


class MetricsWriter:
    """Keeps what was told last, so that each number is of the time since then."""

    def __init__(self, core: Core, stats: HttpStats, write: Callable[[Metric], None]) -> None:
        self._core = core
        self._stats = stats
        self._write = write
        self._before: dict[tuple[str, str], float] = {}

    async def run(self, seconds: float = EVERY_SECONDS) -> None:
        """Write every so many seconds, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            self.tell()

    def tell(self) -> None:
        """Write what has happened since the last time; nothing of a model without requests."""
        try:
            for metric in list(self._since()):
                self._write(metric)
        except OSError as error:
            logger.warning("metrics cannot be written: %s", error)

    def _since(self) -> Iterator[Metric]:
        for model, served in list(self._core.models.items()):
            total = self._more(model, "requests", served.stats.requests)
            if total == 0:
                continue
            yield Metric(model, "PredictionTotal", total, "Count")
            for status in (4, 5):
                replies = sum(
                    count
                    for (_, name, class_), count in self._stats.replies.items()
                    if (name, class_) == (model, status)
                )
                yield Metric(model, f"Prediction{status}XX", self._more(model, f"{status}XX", replies), "Count")
            yield self._mean(model, "LatencyQueue", served.stats.queue_seconds)
            yield self._mean(model, "LatencyInference", served.stats.predict_seconds)

    def _mean(self, model: str, name: str, histogram: Histogram) -> Metric:
        seconds = self._more(model, f"{name} seconds", histogram.total)
        count = self._more(model, f"{name} count", sum(histogram.counts))
        return Metric(model, name, 1000 * seconds / count if count else 0.0, "Milliseconds")

    def _more(self, model: str, what: str, now: float) -> float:
        before = self._before.get((model, what), 0.0)
        self._before[model, what] = now
        return now - before if now >= before else now  # less: a model of this name has come anew


def to_log(metric: Metric) -> None:
    """Write a metric as a line of the log."""
    logger.info("%s %s %s %s", metric.model, metric.name, _number(metric.value), metric.unit)


def to_csv(metric: Metric, folder: Path = FOLDER) -> None:
    """Write a metric as a line of its file."""
    folder.mkdir(parents=True, exist_ok=True)
    moment = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
    with (folder / f"{metric.model}_{metric.name}.csv").open("a", encoding="utf-8") as file:
        file.write(f"{moment}, {_number(metric.value)}\n")


WRITERS: dict[str, Callable[[Metric], None]] = {"log": to_log, "csv": to_csv}
"""Where metrics can be written, by the value of ``--metrics-write-to``."""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.3f}"
