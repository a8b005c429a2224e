"""``GET /openapi.json``: an OpenAPI 3.1 description of what is served, from the models' own signatures.

https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forecastle import media
from forecastle.http import schemas
from forecastle.models.signature import Signature
from forecastle.serving.router import ModelInfo

_ID = {"X-Request-Id": {"description": "The id of the request, in the log too.", "schema": {"type": "string"}}}
_ERROR = {"$ref": "#/components/schemas/Error"}


def describe(models: Sequence[ModelInfo], *, title: str, version: str) -> dict[str, Any]:
    """Return the description; models come in the order in which they are served."""
    paths: dict[str, Any] = {f"/{model.name}/predict": {"post": _predict(model)} for model in models}
    if models:
        paths["/invocations"] = {"post": _invocations(models)}
        paths["/execution-parameters"] = {"get": _execution_parameters(models)}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": "Predictions, served by Forecastle."},
        "paths": {
            **paths,
            "/ping": {"get": _health("ping", "Whether every model can answer.")},
            "/ready": {"get": _health("ready", "The same, with each model's replicas.")},
            "/live": {"get": _health("live", "Whether the process runs.", failing=False)},
        },
        "components": {"schemas": {"Error": _error_schema()}},
    }


def describe_model(model: ModelInfo, *, path: str, version: str) -> dict[str, Any]:
    """Return the description of one model at the path of MMS 1.x; ``version`` is that of the API."""
    operation = {
        "operationId": f"{model.name}_predictions",
        "summary": f"Predict with {model.name}",
        "requestBody": _body(model.signature),
        "responses": {"200": _ok({"*/*": {"schema": {}}}), "default": _failed()},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"RESTful API for: {model.name}", "version": version},
        "paths": {path: {"post": operation}},
        "components": {"schemas": {"Error": _error_schema()}},
    }


def _predict(model: ModelInfo) -> dict[str, Any]:
    answer = {"application/json": {"schema": _wrapped(model.signature)}}
    return {
        "operationId": f"{model.name}_predict",
        "summary": f"Predict with {model.name}",
        "tags": [model.name],
        "requestBody": _body(model.signature),
        "responses": {"200": _ok(answer), "default": _failed()},
    }


def _invocations(models: Sequence[ModelInfo]) -> dict[str, Any]:
    named = {
        "name": "model_name",
        "in": "query",
        "description": "The model that is asked; it may be left out where there is one.",
        "required": len(models) > 1,
        "schema": {"type": "string", "enum": [*(model.name for model in models), *([""] if len(models) == 1 else [])]},
    }
    signature = models[0].signature if len(models) == 1 else None
    return {
        "operationId": "invocations",
        "summary": "Predict, as SageMaker asks",
        "parameters": [named],
        "requestBody": _body(signature),
        "responses": {"200": _ok({"*/*": {"schema": {}}}), "default": _failed()},
    }


def _body(signature: Signature | None) -> dict[str, Any]:
    return {"required": signature is not None, "content": _content(signature)}


def _content(signature: Signature | None) -> dict[str, Any]:
    """What a body may be: a form with a field for each input, or JSON, NPY or a picture for the only input."""
    if signature is None:  # whatever its input_fn reads; by default these
        return {kind: {"schema": {}} for kind in (media.JSON, media.BYTES)}
    fields = {}
    for tensor in signature.inputs:
        picture = schemas.is_picture(signature, tensor)
        file = {"type": "string", "contentMediaType": signature.input_type}
        fields[tensor.name] = file if picture else schemas.value(tensor)
    form = {"type": "object", "required": list(fields), "properties": fields, "additionalProperties": False}
    # Else lists would be sent as the same field many times.
    typed = {name: {"contentType": media.JSON} for name, schema in fields.items() if "contentMediaType" not in schema}
    content: dict[str, Any] = {
        media.JSON: {"schema": form},
        "multipart/form-data": {"schema": form, **({"encoding": typed} if typed else {})},
    }
    if len(signature.inputs) == 1:
        (tensor,) = signature.inputs
        content[media.JSON] = {"schema": {"anyOf": [schemas.value(tensor), form]}}
        if (found := schemas.example(tensor)) is not None:
            content[media.JSON]["example"] = found
        content[media.NPY] = {"schema": {}}
        if schemas.is_picture(signature, tensor):
            del content[media.JSON]
            content[signature.input_type] = {"schema": {}}
    return content


def _wrapped(signature: Signature | None) -> dict[str, Any]:
    prediction: dict[str, Any] = {}
    if signature is not None and signature.outputs:
        prediction = {
            "type": "array",
            "description": f"One entry for each output: {', '.join(tensor.name for tensor in signature.outputs)}.",
        }
    return {"type": "object", "required": ["prediction"], "properties": {"prediction": prediction}}


def _execution_parameters(models: Sequence[ModelInfo]) -> dict[str, Any]:
    properties = {
        "BatchStrategy": {"type": "string", "enum": ["SingleRecord", "MultiRecord"]},
        "MaxConcurrentTransforms": {"type": "integer"},
        "MaxPayloadInMB": {"type": "integer"},
    }
    schema = {"type": "object", "required": list(properties), "properties": properties}
    operation: dict[str, Any] = {
        "operationId": "execution_parameters",
        "summary": "How SageMaker's batch transform may call",
        "responses": {"200": _ok({"application/json": {"schema": schema}}), "default": _failed()},
    }
    if len(models) > 1:
        names = [model.name for model in models]
        named = {"name": "model_name", "in": "query", "required": True, "schema": {"type": "string", "enum": names}}
        operation["parameters"] = [named]
    return operation


def _health(name: str, summary: str, *, failing: bool = True) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}}}
    responses: dict[str, Any] = {"200": _ok(content)}
    if failing:
        responses["503"] = {"description": "Not now; the body has the reasons.", "headers": _ID, "content": content}
    return {"operationId": name, "summary": summary, "responses": responses}


def _ok(content: dict[str, Any]) -> dict[str, Any]:
    return {"description": "OK", "headers": _ID, "content": content}


def _failed() -> dict[str, Any]:
    text = "The request failed; the type says at which step, the message what to change."
    return {"description": text, "headers": _ID, "content": {"application/json": {"schema": _ERROR}}}


def _error_schema() -> dict[str, Any]:
    texts = {name: {"type": "string"} for name in ("type", "message", "request_id")}
    return {
        "type": "object",
        "required": ["code", *texts],
        "properties": {"code": {"type": "integer"}, **texts},
    }
