"""Clipper's ``GET /metrics`` on the query port: its names and its JSON, for its client. Prometheus reads the other one.

Its histograms keep samples, ours count in buckets: what it calls min, max, std_dev and percentiles is as exact here as
the buckets are (a factor of 2 to 2.5), the mean is exact.

https://github.com/ucbrise/clipper/blob/develop/src/libclipper/src/metrics.cpp
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from forecastle.http.core import Core
from forecastle.serving.application import ServedApplication
from forecastle.serving.stats import Histogram

SAMPLE_SECONDS = 5.0
MINUTES = (1, 5, 15)

Named = list[dict[str, dict[str, str]]]


class Meters:
    """Rates over the last minutes, from samples of counters that are taken as of the first time somebody asks."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[str, float]]] = deque(maxlen=int(60 * MINUTES[-1] / SAMPLE_SECONDS) + 1)
        self._began = time.monotonic()

    @property
    def empty(self) -> bool:
        """Whether nobody has asked yet."""
        return not self._samples

    def sample(self, counts: dict[str, float]) -> None:
        """Note how far the counters are."""
        self._samples.append((time.monotonic(), counts))

    def rates(self, name: str, count: float) -> dict[str, str]:
        """Return the rates of one counter, in events per second."""
        now = time.monotonic()
        found = {"unit": "events per second", "rate": _text(count / max(1e-9, now - self._began))}
        for minutes in MINUTES:
            then, counts = next(
                (sample for sample in self._samples if now - sample[0] <= 60 * minutes), (self._began, {})
            )
            found[f"rate_{minutes}min"] = _text((count - counts.get(name, 0.0)) / max(1e-9, now - then))
        return found


def clipper_metrics_route(core: Core, applications: Mapping[str, ServedApplication]) -> Route:
    """Return the route."""
    meters = Meters()

    def sample(loop: asyncio.AbstractEventLoop) -> None:
        meters.sample(_meters(core, applications))
        loop.call_later(SAMPLE_SECONDS, sample, loop)

    async def metrics(_: Request) -> JSONResponse:
        if meters.empty:
            sample(asyncio.get_running_loop())
        return JSONResponse(
            {
                "counters": _counters(core, applications),
                "ratio_counters": _ratios(applications),
                "meters": [{name: meters.rates(name, n)} for name, n in _meters(core, applications).items()],
                "histograms": _histograms(core, applications),
            }
        )

    return Route("/metrics", metrics)


def _counters(core: Core, applications: Mapping[str, ServedApplication]) -> Named:
    caches = [each.cache for each in applications.values() if each.cache is not None]
    counts = {
        "internal:prediction_cache_lookups": sum(cache.hits + cache.misses for cache in caches),
        "internal:aggregate_num_predictions": sum(each.stats.queries for each in applications.values()),
    }
    counts |= {f"app:{name}:num_predictions": each.stats.queries for name, each in applications.items()}
    for (name, version), model in core.versions.items():
        counts[f"model:{name}:{version}:num_predictions"] = model.stats.requests
    return [{name: {"count": str(count)}} for name, count in counts.items()]


def _ratios(applications: Mapping[str, ServedApplication]) -> Named:
    caches = [each.cache for each in applications.values() if each.cache is not None]
    hits = sum(cache.hits for cache in caches)
    found = {"internal:prediction_cache_hit_ratio": _ratio(hits, hits + sum(cache.misses for cache in caches))}
    for name, each in applications.items():
        defaults = sum(each.stats.defaults.values())
        found[f"app:{name}:default_prediction_ratio"] = _ratio(defaults, defaults + each.stats.answered)
    return [{name: {"ratio": ratio}} for name, ratio in found.items()]


def _meters(core: Core, applications: Mapping[str, ServedApplication]) -> dict[str, float]:
    models = core.versions.items()
    counts = {f"app:{name}:prediction_throughput": float(each.stats.answered) for name, each in applications.items()}
    for (name, version), model in models:
        counts[f"model:{name}:{version}:prediction_throughput"] = float(model.stats.answered)
    counts["internal:aggregate_model_throughput"] = float(sum(model.stats.answered for _, model in models))
    return counts


def _histograms(core: Core, applications: Mapping[str, ServedApplication]) -> Named:
    found = []
    for name, each in applications.items():
        found.append({f"app:{name}:prediction_latency": _summary(each.stats.seconds, "microseconds", 1e6)})
    for (name, version), model in core.versions.items():
        label = f"model:{name}:{version}"
        found.append({f"{label}:prediction_latency": _summary(model.stats.predict_seconds, "microseconds", 1e6)})
        found.append({f"{label}:batch_size": _summary(model.stats.batch_sizes, "queries", 1.0)})
    return found


def _summary(histogram: Histogram, unit: str, scale: float) -> dict[str, str]:
    counts = histogram.counts
    size = sum(counts)
    bounds = [*histogram.bounds, histogram.bounds[-1]]
    used = [bound for bound, count in zip(bounds, counts, strict=True) if count]
    mean = histogram.total / size if size else 0.0
    square = sum(count * (bound - mean) ** 2 for bound, count in zip(bounds, counts, strict=True))
    values = {
        "min": used[0] if used else 0.0,
        "max": used[-1] if used else 0.0,
        "mean": mean,
        "std_dev": math.sqrt(square / size) if size else 0.0,
        "p50": _percentile(bounds, counts, 0.5 * size),
        "p95": _percentile(bounds, counts, 0.95 * size),
        "p99": _percentile(bounds, counts, 0.99 * size),
    }
    return {"unit": unit, "size": str(size)} | {name: _text(value * scale) for name, value in values.items()}


def _percentile(bounds: list[float], counts: list[int], rank: float) -> float:
    """Return the bound below which so many values lie."""
    under = 0
    for bound, count in zip(bounds, counts, strict=True):
        under += count
        if count and under >= rank:
            return bound
    return 0.0


def _ratio(part: float, whole: float) -> str:
    return _text(part / whole) if whole else "nan"


def _text(value: float) -> str:
    return f"{value:.6g}"
