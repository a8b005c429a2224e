"""What a handler is given besides its data: the archive, the requests of a batch, and where to put what they get.

https://github.com/awslabs/multi-model-server/blob/master/mms/context.py
https://github.com/pytorch/serve/blob/master/ts/context.py
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from forecastle.errors import BadOutput
from forecastle.hooks.current import CurrentRequest, check_header
from forecastle.runtimes.handler.config import read_config
from forecastle.runtimes.handler.metrics import Metrics
from forecastle.runtimes.version import version

CONTENT_TYPE = "content-type"
_FIRST, _LAST = 200, 599
_OURS = {
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
}
"""Headers that belong to the connection, or to the server."""


class RequestProcessor:
    """One request of a batch as a handler may look at it, and what its reply is to have besides a body.

    ``properties`` are the request's headers by lower-case name (those that begin with ``x-``, and the body's
    ``content-type``), and the content types of a form's fields by the fields' names.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = {name.lower(): value for name, value in properties.items()}
        self.status = 0
        self.headers: dict[str, str] = {}

    def get_request_property(self, key: str) -> str | None:
        """Return a header or a field's content type, whatever the letters' case; ``None`` where it is not there."""
        return self._properties.get(key.lower())

    def get_request_properties(self) -> dict[str, str]:
        """Return all of them, by lower-case name."""
        return dict(self._properties)

    def report_status(self, code: Any, reason_phrase: str | None = None) -> None:  # noqa: ARG002 -- HTTP/1.1's own
        """Answer with this status.

        Raises:
            BadOutput: it is no status of an answer.
        """
        if isinstance(code, bool) or not isinstance(code, int) or not _FIRST <= code <= _LAST:
            raise BadOutput(f"the handler set the status {code!r}; expected {_FIRST} to {_LAST}")
        self.status = int(code)

    def get_response_status_code(self) -> int:
        """Return the status so far."""
        return self.status or 200

    def add_response_property(self, key: str, value: Any) -> None:
        """Answer with this header.

        Raises:
            BadOutput: no header can be called so or hold that, or it is the server's own.
        """
        name = str(key).lower()
        if name in _OURS:
            raise BadOutput(f"the handler set the header {name!r}, which is the server's own")
        check_header(name, str(value))
        self.headers[name] = str(value)

    def get_response_headers(self) -> dict[str, str]:
        """Return the headers so far, by lower-case name."""
        return dict(self.headers)

    def get_response_header(self, key: str) -> str | None:
        """Return a header so far, or ``None``."""
        return self.headers.get(key.lower())


class Context:
    """What ``initialize`` and ``handle`` take; the requests are those of the batch at hand, none while it loads.

    ``system_properties`` has ``model_dir``, ``gpu_id`` (``None``: models run on the CPU), ``batch_size``,
    ``server_name``, ``server_version`` and ``limit_max_image_pixels``. ``manifest`` is the archive's.
    """

    def __init__(self, model_name: str, model_dir: str, manifest: dict[str, Any], batch_size: int) -> None:
        self.model_name = model_name
        self.manifest = manifest
        self.system_properties: dict[str, Any] = {
            "model_dir": model_dir,
            "gpu_id": None,
            "batch_size": batch_size,
            "server_name": "MMS",
            "server_version": version(),
            "limit_max_image_pixels": True,
        }
        self.request_ids: dict[int, str] = {}
        self.request_processor: list[RequestProcessor] = []
        self.metrics = Metrics(model_name, self.request_ids)

    @cached_property
    def model_yaml_config(self) -> dict[str, Any]:
        """What TorchServe's ``model-config.yaml`` says, for the handler's own use; nothing where there is none.

        Raises:
            LoadFailed: the file is not there or holds no mapping, or PyYAML is not installed.
        """
        name = self.manifest.get("model", {}).get("configFile", "")
        return read_config(Path(self.system_properties["model_dir"]) / name) if name else {}

    def enter(self, batch: list[tuple[CurrentRequest, Mapping[str, str]]]) -> None:
        """Begin a batch: the requests, and the content types of their parts by name."""
        self.request_ids.clear()
        self.request_ids.update((index, request.id) for index, (request, _) in enumerate(batch))
        self.request_processor = [RequestProcessor({**request.headers, **types}) for request, types in batch]

    def get_request_id(self, idx: int = 0) -> str | None:
        """Return the id of a request."""
        return self.request_ids.get(idx)

    def get_request_header(self, idx: int, key: str) -> str | None:
        """Return a header of a request; see ``RequestProcessor``."""
        return self.request_processor[idx].get_request_property(key)

    def get_all_request_header(self, idx: int) -> dict[str, str]:
        """Return the headers of a request, by lower-case name."""
        return self.request_processor[idx].get_request_properties()

    def set_response_content_type(self, idx: int, value: str) -> None:
        """Say what the answer to a request is."""
        self.request_processor[idx].add_response_property(CONTENT_TYPE, value)

    def get_response_content_type(self, idx: int) -> str | None:
        """Return what was said that the answer is."""
        return self.request_processor[idx].get_response_header(CONTENT_TYPE)

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        """Answer a request with a header; see ``RequestProcessor.add_response_property``."""
        self.request_processor[idx].add_response_property(key, value)

    def get_response_headers(self, idx: int) -> dict[str, str]:
        """Return the headers that a request is to be answered with so far."""
        return self.request_processor[idx].get_response_headers()

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """Answer a request with this status."""
        self.request_processor[idx].report_status(code, phrase)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        """Answer every request of the batch with this status."""
        for processor in self.request_processor:
            processor.report_status(code, phrase)
