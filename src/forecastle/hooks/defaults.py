"""What each hook does where neither the user nor the runtime says otherwise."""

from __future__ import annotations

from typing import Any

from werkzeug.datastructures import MIMEAccept

from forecastle import media
from forecastle.hooks.spec import BatchStrategy


def identity(data: Any) -> Any:
    """Answer with the input: the model of a server that was given none."""
    return data


def model_fn(model_dir: str) -> Any:  # noqa: ARG001
    """Return a model that answers with its input."""
    return identity


def input_fn(input_data: bytes, content_type: str) -> Any:
    """Decode by content type; what has no codec stays bytes."""
    return media.decode(input_data, content_type)


def predict_fn(data: Any, model: Any) -> Any:
    """Call the model with the data; one that cannot be called predicts."""
    return model(data) if callable(model) else model.predict(data)


def output_fn(prediction: Any, accept: MIMEAccept) -> tuple[bytes, str]:
    """Write the prediction as what the client likes best among what it can be written as."""
    content_type = media.negotiate(accept, media.offers(prediction))
    return media.encode(prediction, content_type), content_type


def ping_fn(model: Any) -> bool:  # noqa: ARG001
    """Say that a loaded model is well."""
    return True


def batch_strategy() -> BatchStrategy:
    """Let batch transform fill a body with several records."""
    return BatchStrategy.MULTI_RECORD


def max_concurrent_transforms() -> int:
    """Let batch transform send one request at a time."""
    return 1


def max_payload_in_mb() -> int:
    """Let batch transform send 6 MB, SageMaker's own default."""
    return 6
