"""The names of the `inference-server` package, over Forecastle.

Contract: https://github.com/jpmorganchase/inference-server. A package that marks its hooks with ``plugin_hook`` and
offers them in the entry-point group ``inference_server`` is served by ``forecastle serve`` as it is.
"""

from __future__ import annotations

from werkzeug.datastructures import MIMEAccept

from forecastle.hooks.spec import BatchStrategy, plugin_hook

__all__ = ("BatchStrategy", "MIMEAccept", "plugin_hook")
