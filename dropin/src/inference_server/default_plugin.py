"""What each hook does where no plugin has it: the contract's defaults, which pass bytes through.

They differ from Forecastle's own, whose ``input_fn`` and ``output_fn`` go by content type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from werkzeug.datastructures import MIMEAccept

from forecastle.hooks.spec import BatchStrategy, plugin_hook


@plugin_hook(trylast=True)
def model_fn(model_dir: str) -> Callable[[bytes], bytes]:  # noqa: ARG001
    """Return a model that answers with its input."""
    return lambda data: data


@plugin_hook(trylast=True)
def ping_fn(model: Any) -> bool:  # noqa: ARG001
    """Say that a loaded model is well."""
    return True


@plugin_hook(trylast=True)
def input_fn(input_data: bytes, content_type: str) -> bytes:  # noqa: ARG001
    """Return the body as it is."""
    return input_data


@plugin_hook(trylast=True)
def predict_fn(data: Any, model: Any) -> Any:
    """Call the model."""
    return model(data)


@plugin_hook(trylast=True)
def output_fn(prediction: Any, accept: MIMEAccept) -> tuple[Any, str]:  # noqa: ARG001
    """Return the prediction as it is."""
    return prediction, "application/octet-stream"


@plugin_hook(trylast=True)
def batch_strategy() -> BatchStrategy:
    """Let batch transform fill a body with several records."""
    return BatchStrategy.MULTI_RECORD


@plugin_hook(trylast=True)
def max_concurrent_transforms() -> int:
    """Let batch transform send one request at a time."""
    return 1


@plugin_hook(trylast=True)
def max_payload_in_mb() -> int:
    """Let batch transform send 6 MB."""
    return 6
