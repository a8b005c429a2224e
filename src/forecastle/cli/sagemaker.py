"""In a container, and in SageMaker's: the settings that the platform implies, and the model that it puts there.

What is found here counts less than a flag, one of our own variables or a key of the file, and more than a default.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from forecastle.models import platform

_LEVELS = {"10": "debug", "20": "info", "30": "warning", "40": "error", "50": "critical"}

VARIABLES: dict[str, tuple[str, Callable[[str], str]]] = {
    "SAGEMAKER_BIND_TO_PORT": ("port", str),
    "SAGEMAKER_SAFE_PORT_RANGE": ("management_port", lambda ports: ports.partition("-")[0]),
    "SAGEMAKER_MODEL_SERVER_WORKERS": ("replicas", str),
    "SAGEMAKER_MODEL_SERVER_TIMEOUT": ("timeout", "{}m".format),
    "SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS": ("timeout", str),
    "SAGEMAKER_STARTUP_TIMEOUT": ("start_timeout", str),
    "SAGEMAKER_MAX_PAYLOAD_IN_MB": ("max_body", "{}MB".format),
    "SAGEMAKER_MULTI_MODEL": ("multi_model", str.lower),
    "SAGEMAKER_BASE_DIR": ("model_root", "{}/models".format),
    "SAGEMAKER_CONTAINER_LOG_LEVEL": ("log_level", lambda level: _LEVELS.get(level, level)),
}
"""The platform's variables: which option each sets, and how its value becomes the option's; of two, the later one."""


def settings(environment: Mapping[str, str], *, contained: bool) -> dict[str, tuple[str, str]]:
    """Return the implied options: by key, where each comes from and its value as text."""
    found = {"host": ("a container", "0.0.0.0")} if contained else {}  # noqa: S104 -- a container's port is published
    for variable, (key, convert) in VARIABLES.items():
        value = environment.get(variable, "").strip()
        if value:
            found[key] = (variable, convert(value))
    return found


def is_container() -> bool:
    """Say whether this process is what a container was started for: the first in it.

    A shell or an editor's terminal inside a container is none, and what is tried there is not for every network.
    """
    return os.getpid() == 1


def model() -> str | None:
    """Return the directory where the platform puts a model, if there is anything in it."""
    path = platform.model_dir()
    return str(path) if path.is_dir() and any(path.iterdir()) else None
