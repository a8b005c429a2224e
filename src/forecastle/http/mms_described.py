"""A model as MMS 1.x's management API describes it.

https://github.com/awslabs/multi-model-server/blob/master/docs/management_api.md
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from forecastle.cluster.processes import memory, started
from forecastle.cluster.specs import ModelSpec
from forecastle.serving.router import ReplicaStatus, ServedModel

_STATES = {"ready": "READY", "starting": "LOADING", "loading": "LOADING"}


def describe(spec: ModelSpec, model: ServedModel | None, *, registered: bool, reason: str) -> dict[str, Any]:
    """Return the description of a version, ``model`` if it is served; what is not known is left out.

    ``batchSize`` is -1 where as many are predicted together as pay, ``maxBatchDelay`` in milliseconds. ``reason`` says
    why a registered version is not served as it is to be.
    """
    info = None if model is None else model.describe()
    waiting, running = (0, 0) if model is None else (model.waiting, model.running)
    replicas = [] if info is None else info.replicas
    described = {
        "modelName": spec.name,
        "modelVersion": spec.version,
        "modelUrl": spec.source or "",
        "engine": "" if info is None else info.runtime,
        "runtime": "python",
        "minWorkers": spec.replicas,
        "maxWorkers": spec.replicas,
        "batchSize": spec.batch_size,
        "maxBatchDelay": round(spec.batch_delay * 1000),
        "loadedAtStartup": not registered,
        "workers": [_worker(replica) for replica in replicas if replica.state != "stopped"],
        "jobQueueStatus": {
            "remainingCapacity": max(0, spec.queue_size - waiting),
            "pendingRequests": waiting + running,
        },
        "reason": reason,
    }
    return {key: value for key, value in described.items() if value != ""}


def _worker(replica: ReplicaStatus) -> dict[str, Any]:
    worker: dict[str, Any] = {
        "id": str(replica.index),
        "status": _STATES.get(replica.state, "UNLOADING"),
        "gpu": False,
    }
    if replica.reason:
        worker["reason"] = replica.reason
    if replica.pid is not None:
        worker["pid"] = replica.pid
        if (began := started(replica.pid)) is not None:
            moment = datetime.fromtimestamp(began, timezone.utc)
            worker["startTime"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if (held := memory(replica.pid)) is not None:
            worker["memoryUsage"] = held
    return worker
