"""The names of the `inference-server` package, over Forecastle.

Contract: https://github.com/jpmorganchase/inference-server. A package that marks its hooks with ``plugin_hook`` and
offers them in the entry-point group ``inference_server`` is served as it is: by ``forecastle serve``, which batches,
supervises and measures, or by a WSGI server of one's own, ``gunicorn "inference_server:create_app()"``.
"""

from __future__ import annotations

from werkzeug.datastructures import MIMEAccept

from forecastle.hooks.spec import BatchStrategy, plugin_hook
from inference_server.app import create_app, warmup

__all__ = ("BatchStrategy", "MIMEAccept", "create_app", "plugin_hook", "warmup")
