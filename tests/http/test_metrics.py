"""The metrics, read as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from forecastle.errors import BadInput
from forecastle.http.management import management_app
from forecastle.http.stats import HttpStats
from http_fakes import MemoryCore, Running, running

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def management(core: MemoryCore, stats: HttpStats) -> Iterator[httpx.Client]:
    with running(management_app(core, stats)) as server, httpx.Client(base_url=server.url) as client:
        yield client


def _scrape(management: httpx.Client) -> Samples:
    reply = management.get("/metrics")
    assert reply.status_code == 200
    families = text_string_to_metric_families(reply.text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def _value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_requests_are_counted_by_route_model_and_status_and_errors_by_type(
    client: httpx.Client, management: httpx.Client, core: MemoryCore
) -> None:
    client.post("/resnet-18/predict", json=[1])
    client.post("/invocations", json=[1])
    core.answer = lambda _: BadInput("no")
    client.post("/invocations", json=[1])
    client.post("/vgg/predict", json=[1])
    client.get("/ping")
    samples = _scrape(management)
    name, predict = "forecastle_http_requests_total", "/{name}/predict"
    assert _value(samples, name, route=predict, model="resnet-18", status="2xx") == 1
    assert _value(samples, name, route=predict, model="", status="4xx") == 1
    assert _value(samples, name, route="/invocations", model="resnet-18", status="2xx") == 1
    assert _value(samples, name, route="/invocations", model="resnet-18", status="4xx") == 1
    assert _value(samples, name, route="/ping", model="", status="2xx") == 1
    assert _value(samples, "forecastle_http_errors_total", route="/invocations", type="BadInput") == 1
    assert _value(samples, "forecastle_http_errors_total", route=predict, type="ModelNotFound") == 1
    assert _value(samples, "forecastle_http_in_flight") == 0


def test_the_cores_counters_and_histograms_are_shown(management: httpx.Client, core: MemoryCore) -> None:
    stats = core.models["resnet-18"].stats
    stats.requests, stats.answered, stats.cancelled = 7, 4, 1
    stats.fail("BadInput")
    for size in (1, 2, 2, 500):
        stats.batch_sizes.observe(size)
    stats.queue_seconds.observe(0.003)
    samples = _scrape(management)
    assert _value(samples, "forecastle_model_requests_total", model="resnet-18", version="1") == 7
    assert _value(samples, "forecastle_model_answered_total", model="resnet-18", version="1") == 4
    assert _value(samples, "forecastle_model_cancelled_total", model="resnet-18", version="1") == 1
    assert _value(samples, "forecastle_model_errors_total", model="resnet-18", version="1", type="BadInput") == 1
    bucket = "forecastle_batch_size_bucket"
    assert _value(samples, bucket, model="resnet-18", version="1", le="1.0") == 1
    assert _value(samples, bucket, model="resnet-18", version="1", le="256.0") == 3
    assert _value(samples, bucket, model="resnet-18", version="1", le="+Inf") == 4
    assert _value(samples, "forecastle_batch_size_sum", model="resnet-18", version="1") == 505
    assert _value(samples, "forecastle_queue_seconds_count", model="resnet-18", version="1") == 1
    assert _value(samples, "forecastle_predict_seconds_count", model="resnet-18", version="1") == 0
    assert _value(samples, "forecastle_replicas", model="resnet-18", version="1", state="ready") == 1
    assert _value(samples, "forecastle_replicas", model="resnet-18", version="1", state="failed") == 0
    assert ("process_resident_memory_bytes", frozenset()) in samples


def test_the_open_metrics_format_is_given_to_who_asks(management: httpx.Client) -> None:
    reply = management.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert reply.headers["content-type"].startswith("application/openmetrics-text")
    assert reply.text.endswith("# EOF\n")


def test_a_thousand_made_up_urls_make_no_series(server: Running, management: httpx.Client) -> None:
    def scan(first: int) -> None:
        with server.connect() as connection:
            for i in range(first, first + 500):
                connection.send(
                    f"POST /m{i}/predict HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n"
                    f"GET /m{i}.php?a={i} HTTP/1.1\r\nHost: t\r\n\r\n".encode()
                )
                assert [connection.reply()[0], connection.reply()[0]] == [404, 404]

    scan(0)
    before = set(_scrape(management))
    scan(500)
    assert set(_scrape(management)) == before
