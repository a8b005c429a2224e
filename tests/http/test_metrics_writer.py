from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from forecastle.http.metrics_writer import Metric, MetricsWriter, to_csv, to_log
from forecastle.http.stats import HttpStats
from http_fakes import MemoryCore


def told(core: MemoryCore, stats: HttpStats) -> tuple[MetricsWriter, list[Metric]]:
    metrics: list[Metric] = []
    return MetricsWriter(core, stats, metrics.append), metrics


def test_each_number_is_of_the_time_since_the_last_and_a_quiet_model_says_nothing() -> None:
    core, stats = MemoryCore("cats"), HttpStats()
    model = core.models["cats"]
    writer, metrics = told(core, stats)
    writer.tell()
    assert metrics == []
    for total, failures in ((3, 1), (5, 0)):
        model.stats.requests += total
        for _ in range(failures):
            stats.count("/{name}/predict", "cats", 400)
        for _ in range(total):
            model.stats.queue_seconds.observe(0.002)
        model.stats.predict_seconds.observe(0.01)
        writer.tell()
        assert {metric.name: metric.value for metric in metrics} == pytest.approx(
            {
                "PredictionTotal": total,
                "Prediction4XX": failures,
                "Prediction5XX": 0,
                "LatencyQueue": 2.0,
                "LatencyInference": 10.0,
            }
        )
        metrics.clear()


def test_a_model_that_has_come_anew_begins_anew() -> None:
    core = MemoryCore("cats")
    model = core.models["cats"]
    writer, metrics = told(core, HttpStats())
    model.stats.requests = 10
    writer.tell()
    model.stats.requests = 4
    metrics.clear()
    writer.tell()
    assert metrics[0] == Metric("cats", "PredictionTotal", 4, "Count")


def test_a_metric_is_a_line_of_the_log_or_of_its_own_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        to_log(Metric("cats", "LatencyQueue", 1.5, "Milliseconds"))
    assert caplog.messages == ["cats LatencyQueue 1.500 Milliseconds"]
    for value in (3.0, 4.25):
        to_csv(Metric("cats", "PredictionTotal", value, "Count"), tmp_path / "metrics")
    lines = (tmp_path / "metrics" / "cats_PredictionTotal.csv").read_text().splitlines()
    assert [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, ", "", line) for line in lines] == ["3", "4.250"]


def test_what_cannot_be_written_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def full(metric: Metric) -> None:
        raise OSError(28, "No space left on device")

    core = MemoryCore("cats")
    core.models["cats"].stats.requests = 1
    MetricsWriter(core, HttpStats(), full).tell()
    assert "metrics cannot be written: [Errno 28] No space left on device" in caplog.text
