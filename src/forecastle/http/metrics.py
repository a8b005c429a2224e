"""``GET /metrics``: the counters of HTTP and of the serving core in the Prometheus text formats.

Nothing is kept here: the plain counters are read when somebody asks. Labels come from the route table, the models that
are served and the error tree, so no request can make a new series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecastle.http.application_metrics import families
from forecastle.http.core import Core
from forecastle.http.histograms import add_histogram
from forecastle.http.stats import HttpStats
from forecastle.serving.application import ServedApplication
from forecastle.serving.stats import ModelStats

Key = tuple[str, str]
"""A model's name and version."""

_LABELS = ("model", "version")

STATES = ("starting", "loading", "ready", "failed", "backing off", "stopped")
"""The states of a replica. Each has a series at all times: one that vanishes looks like one that was not scraped."""


def metrics_route(core: Core, stats: HttpStats, applications: Mapping[str, ServedApplication]) -> Route:
    """Return ``GET /metrics`` over these counters and the process's own."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(ForecastleCollector(core, stats, applications))

    async def endpoint(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return Route("/metrics", endpoint)


class ForecastleCollector(Collector):
    """Turns the counters into metric families when they are asked for."""

    def __init__(self, core: Core, stats: HttpStats, applications: Mapping[str, ServedApplication]) -> None:
        self._core = core
        self._stats = stats
        self._applications = applications

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: the families depend on no state, and none is registered twice."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield every family, with a series for each version of a model, and for each application."""
        yield from self._http()
        models = [(key, model.stats) for key, model in self._core.versions.items()]
        yield from _counters(models)
        yield _histogram("forecastle_queue_seconds", "Time requests waited for a replica.", models, "queue_seconds")
        yield _histogram("forecastle_predict_seconds", "Time a batch spent in a replica.", models, "predict_seconds")
        yield _histogram("forecastle_batch_size", "Requests predicted together.", models, "batch_sizes")
        yield from self._replicas()
        yield from families(self._applications)

    def _http(self) -> Iterator[Metric]:
        replies = CounterMetricFamily(
            "forecastle_http_requests",
            "HTTP requests answered, by class of status.",
            labels=["route", "model", "status"],
        )
        for (route, model, status), count in self._stats.replies.items():
            replies.add_metric([route, model, f"{status}xx"], count)
        yield replies
        errors = CounterMetricFamily(
            "forecastle_http_errors", "HTTP requests answered with an error, by its type.", labels=["route", "type"]
        )
        for (route, type_), count in self._stats.errors.items():
            errors.add_metric([route, type_], count)
        yield errors
        yield GaugeMetricFamily(
            "forecastle_http_in_flight", "Prediction requests that are being answered.", value=self._stats.in_flight
        )

    def _replicas(self) -> Iterator[Metric]:
        states = GaugeMetricFamily("forecastle_replicas", "Replicas by their state.", labels=[*_LABELS, "state"])
        restarts = CounterMetricFamily("forecastle_replica_restarts", "Restarts of replicas.", labels=_LABELS)
        for key, model in self._core.versions.items():
            replicas = model.describe().replicas
            counts = Counter(replica.state for replica in replicas)
            for state in STATES:
                states.add_metric([*key, state], counts[state])
            restarts.add_metric(key, sum(replica.restarts for replica in replicas))
        yield states
        yield restarts


def _counters(models: list[tuple[Key, ModelStats]]) -> Iterator[Metric]:
    for attribute, text in (
        ("requests", "Requests that entered the queue of a model."),
        ("answered", "Requests that a model answered."),
        ("cancelled", "Requests whose client went away first."),
        ("dropped", "Answers of replicas that nobody waited for any more."),
        ("broken", "Answers in pieces that ended before they were whole."),
    ):
        family = CounterMetricFamily(f"forecastle_model_{attribute}", text, labels=_LABELS)
        for key, stats in models:
            family.add_metric(key, getattr(stats, attribute))
        yield family
    failed = CounterMetricFamily(
        "forecastle_model_errors", "Requests to a model that failed, by the error's type.", labels=[*_LABELS, "type"]
    )
    for key, stats in models:
        for type_, count in stats.failed.items():
            failed.add_metric([*key, type_], count)
    yield failed


def _histogram(metric: str, text: str, models: list[tuple[Key, ModelStats]], attribute: str) -> Metric:
    family = HistogramMetricFamily(metric, text, labels=_LABELS)
    for key, stats in models:
        add_histogram(family, key, getattr(stats, attribute))
    return family
