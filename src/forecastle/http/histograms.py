"""Our histograms as Prometheus's."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client.core import HistogramMetricFamily

from forecastle.serving.stats import Histogram


def add_histogram(family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram) -> None:
    """Add a series to a family."""
    buckets = []
    under = 0
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        under += count
        buckets.append((bound, under))
    family.add_metric(labels, buckets, histogram.total)
