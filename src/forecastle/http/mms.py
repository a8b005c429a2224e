"""The MMS 0.x contract: ``POST /{name}/predict``.

Inputs come as a form (``-F "input0=@kitten.jpg"``, or the input's own name) or, for a model with one input, as the raw
body. A JSON answer is wrapped as ``{"prediction": …}``; any other goes out as it is.

https://github.com/awslabs/mxnet-model-server/blob/v0.4.0/docs/rest_api.md
"""

from __future__ import annotations

from starlette.types import Scope

from forecastle.http.contract import Contract, RequestHeaders, one, require_post
from forecastle.http.core import Core
from forecastle.http.forms import MULTIPART, URLENCODED, split_multipart, split_urlencoded
from forecastle.messages import Part, Response

SUFFIX = "/predict"


def model(core: Core, scope: Scope, _: RequestHeaders) -> str:
    """Return the model that the path ``/{name}/predict`` names.

    Raises:
        ModelNotFound: no model of that name is served.
        MethodNotAllowed: it is, but the method is not POST.
    """
    name: str = scope["path"][1 : -len(SUFFIX)]
    if name not in core.models:
        raise core.unknown(name)
    require_post(scope)
    return name


def parts(body: bytes, content_type: str) -> list[Part]:
    """Split a form into its fields; any other body is one part without a name.

    ``curl -d '[1, 2]'`` calls what it sends a form. No form begins like a JSON object or array, so such a body is taken
    for the JSON it is.

    Raises:
        BadInput: the form is malformed.
    """
    kind = content_type[:33].lower()
    if kind.startswith(MULTIPART):
        return split_multipart(body, content_type)
    if kind.startswith(URLENCODED):
        if body[:1] in (b"[", b"{"):
            return [Part("", "application/json", body)]
        return split_urlencoded(body)
    return [Part("", content_type, body)]


def body(response: Response) -> bytes:
    """Wrap a JSON answer, without parsing it."""
    kind = response.content_type
    if kind == "application/json" or kind.partition(";")[0].strip().lower() == "application/json":
        return b'{"prediction": %b}' % response.body
    return response.body


CONTRACT = Contract("/{name}/predict", model, one(parts), body)
