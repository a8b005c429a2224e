"""Forecastle: a model server. This is what the author of hooks imports."""

from __future__ import annotations

from forecastle.errors import BadInput, BadOutput, ForecastleError, NotAcceptable, RequestError, UnsupportedMediaType
from forecastle.hooks.current import current_request
from forecastle.hooks.spec import BatchStrategy, MIMEAccept, plugin_hook

__all__ = [
    "BadInput",
    "BadOutput",
    "BatchStrategy",
    "ForecastleError",
    "MIMEAccept",
    "NotAcceptable",
    "RequestError",
    "UnsupportedMediaType",
    "current_request",
    "plugin_hook",
]
