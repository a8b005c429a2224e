"""The metric families of applications."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from forecastle.http.histograms import add_histogram
from forecastle.serving.application import ServedApplication
from forecastle.serving.cache import Cache

_COUNTERS: tuple[tuple[str, str, Callable[[ServedApplication], float]], ...] = (
    ("queries", "Queries to an application.", lambda each: each.stats.queries),
    ("answered", "Queries that models answered.", lambda each: each.stats.answered),
    ("cancelled", "Queries whose client went away first.", lambda each: each.stats.cancelled),
    ("failed", "Queries that got an error and no default.", lambda each: each.stats.failed),
    ("feedbacks", "Feedback that was given.", lambda each: each.stats.feedbacks),
)
_CACHE: tuple[tuple[str, str, Callable[[Cache], float]], ...] = (
    ("hits", "Queries answered from the cache.", lambda cache: cache.hits),
    ("misses", "Queries that the cache had no answer to.", lambda cache: cache.misses),
    ("joined", "Queries that shared a prediction which was already under way.", lambda cache: cache.joined),
    ("evicted", "Answers that the cache gave up for room.", lambda cache: cache.evicted),
)


def families(applications: Mapping[str, ServedApplication]) -> Iterator[Metric]:
    """Yield every family, with a series for each application; none where there is no application."""
    if not applications:
        return
    label = ["application"]
    for name, text, value in _COUNTERS:
        counter = CounterMetricFamily(f"forecastle_application_{name}", text, labels=label)
        for application in applications.values():
            counter.add_metric([application.name], value(application))
        yield counter
    defaults = CounterMetricFamily(
        "forecastle_application_defaults", "Queries that got the default output, by cause.", labels=[*label, "cause"]
    )
    seconds = HistogramMetricFamily("forecastle_application_seconds", "Time queries took to be answered.", labels=label)
    waiting = GaugeMetricFamily("forecastle_application_waiting", "Queries that are being answered.", labels=label)
    for application in applications.values():
        for cause, count in application.stats.defaults.items():
            defaults.add_metric([application.name, cause], count)
        add_histogram(seconds, [application.name], application.stats.seconds)
        waiting.add_metric([application.name], application.waiting)
    yield from (defaults, seconds, waiting)
    yield from _caches({name: each.cache for name, each in applications.items() if each.cache is not None})


def _caches(caches: Mapping[str, Cache]) -> Iterator[Metric]:
    label = ["application"]
    for name, text, value in _CACHE:
        counter = CounterMetricFamily(f"forecastle_cache_{name}", text, labels=label)
        for application, cache in caches.items():
            counter.add_metric([application], value(cache))
        yield counter
    size = GaugeMetricFamily("forecastle_cache_bytes", "What the cache holds, its overhead included.", labels=label)
    for application, cache in caches.items():
        size.add_metric([application], cache.size)
    yield size
