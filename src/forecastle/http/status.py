"""What is served and how it fares, in one value: for ``forecastle status`` and ``top``, and whoever else looks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from forecastle.cluster.management import Management
from forecastle.http.core import Core
from forecastle.serving.application import ServedApplication
from forecastle.serving.router import ReplicaStatus


class ModelStatus(msgspec.Struct):
    """A version of a model. ``state`` is serving, loading, failed or idle (it has no replica), ``reason`` why.

    Counters are since the start.
    """

    name: str
    version: str
    current: bool
    registered: bool
    state: str
    reason: str
    runtime: str
    input_type: str
    labels: tuple[str, ...]
    source: str
    waiting: int
    running: int
    requests: int
    answered: int
    failed: int
    batches: int
    predict_seconds: float
    replicas: list[ReplicaStatus]


class ApplicationStatus(msgspec.Struct):
    """An application. ``seconds`` is the sum of what its queries took; ``defaults`` are counted by their cause."""

    name: str
    input_type: str
    default_output: str
    slo_micros: int
    policy: str
    models: tuple[str, ...]
    waiting: int
    queries: int
    answered: int
    failed: int
    cancelled: int
    defaults: dict[str, int]
    seconds: float
    cache_hits: int
    cache_misses: int
    cache_bytes: int


class Status(msgspec.Struct):
    """The whole server. ``troubles`` are why it is not ready, and what else is wrong."""

    ready: bool
    troubles: list[str]
    models: list[ModelStatus]
    applications: list[ApplicationStatus]


def status(management: Management, core: Core, applications: Mapping[str, ServedApplication]) -> Status:
    """Return what is known now."""
    troubles = core.troubles()
    store = [f"the store: {management.trouble}"] if management.trouble else []
    return Status(
        ready=not troubles,
        troubles=[*troubles, *store],
        models=sorted([*_served(management, core), *_failed(management, core)], key=partial(_place, management)),
        applications=[_application(management, each) for each in applications.values()],
    )


def _served(management: Management, core: Core) -> list[ModelStatus]:
    found = []
    for (name, version), model in core.versions.items():
        info, stats = model.describe(), model.stats
        spec = management.desired.models.get(name, {}).get(version)
        bad = next((replica for replica in info.replicas if replica.reason), None)
        found.append(
            ModelStatus(
                name=name,
                version=version,
                current=name in core.models and core.models[name].describe().version == version,
                registered=spec is not None,
                state=_state(info.replicas),
                reason=management.failures.get((name, version), bad.reason if bad else ""),
                runtime=info.runtime,
                input_type=spec.input_type if spec else "",
                labels=spec.labels if spec else (),
                source=(spec.source or "") if spec else "",
                waiting=model.waiting,
                running=model.running,
                requests=stats.requests,
                answered=stats.answered,
                failed=sum(stats.failed.values()),
                batches=sum(stats.batch_sizes.counts),
                predict_seconds=stats.predict_seconds.total,
                replicas=info.replicas,
            )
        )
    return found


def _place(management: Management, model: ModelStatus) -> tuple[str, int]:
    """Where a version stands in a list: by name, and among those of its name as they were registered."""
    versions = list(management.desired.models.get(model.name, ()))
    return model.name, versions.index(model.version) if model.version in versions else -1


def _state(replicas: list[ReplicaStatus]) -> str:
    if not replicas:
        return "idle"
    if any(replica.state == "ready" for replica in replicas):
        return "serving"
    return "failed" if any(replica.reason for replica in replicas) else "loading"


def _failed(management: Management, core: Core) -> list[ModelStatus]:
    """Registered versions that have no route at all, because they cannot be loaded."""
    return [
        ModelStatus(
            name=name,
            version=version,
            current=management.desired.current[name] == version,
            registered=True,
            state="failed" if (name, version) in management.failures else "loading",
            reason=management.failures.get((name, version), ""),
            runtime="",
            input_type=spec.input_type,
            labels=spec.labels,
            source=spec.source or "",
            waiting=0,
            running=0,
            requests=0,
            answered=0,
            failed=0,
            batches=0,
            predict_seconds=0.0,
            replicas=[],
        )
        for name, versions in management.desired.models.items()
        for version, spec in versions.items()
        if (name, version) not in core.versions
    ]


def _application(management: Management, application: ServedApplication) -> ApplicationStatus:
    spec, stats, cache = management.desired.application(application.name), application.stats, application.cache
    return ApplicationStatus(
        name=spec.name,
        input_type=spec.input_type,
        default_output=spec.default_output,
        slo_micros=spec.slo_micros,
        policy=spec.policy,
        models=spec.models,
        waiting=application.waiting,
        queries=stats.queries,
        answered=stats.answered,
        failed=stats.failed,
        cancelled=stats.cancelled,
        defaults=stats.defaults,
        seconds=stats.seconds.total,
        cache_hits=cache.hits if cache else 0,
        cache_misses=cache.misses if cache else 0,
        cache_bytes=cache.size if cache else 0,
    )
