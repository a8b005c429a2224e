"""``GET /api-description``: the Swagger 2.0 description that MMS's clients know, made valid.

Two things there are no Swagger (``required`` as a text, a ``schema`` on a form's field); here they are what they should
be.

https://github.com/awslabs/mxnet-model-server/blob/v0.4.0/docs/rest_api.md#api-description
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forecastle.http import schemas
from forecastle.models.signature import Signature
from forecastle.serving.router import ModelInfo


def describe(models: Sequence[ModelInfo], *, host: str, title: str, version: str) -> dict[str, Any]:
    """Return the description of the models' routes; ``host`` is ``HOST:PORT`` as the client reached it."""
    return {
        "swagger": "2.0",
        "info": {"version": version, "title": title},
        "host": host,
        "schemes": ["http"],
        "paths": {
            **{f"/{model.name}/predict": _predict(model) for model in models},
            "/ping": _page("ping", {"health": {"type": "string"}}),
            "/api-description": _page("api-description", {"description": {"type": "object"}}),
        },
    }


def _predict(model: ModelInfo) -> dict[str, Any]:
    signature = model.signature
    prediction: dict[str, Any] = {"type": "object", "properties": {"prediction": {}}}
    operation: dict[str, Any] = {
        "operationId": f"{model.name}_predict",
        "consumes": ["application/json"] if signature is None else ["multipart/form-data"],
        "produces": ["application/json"] if signature is None else [signature.output_type],
        "parameters": [_body()] if signature is None else _fields(signature),
        "responses": {
            "200": {"description": "OK", "schema": prediction},
            "default": {"description": "The request failed; the message says why.", "schema": _error()},
        },
    }
    if signature is not None and signature.output_type.startswith("image/"):
        operation["responses"]["200"]["schema"] = {"type": "file"}
    return {"post": operation}


def _fields(signature: Signature) -> list[dict[str, Any]]:
    fields = []
    for index, tensor in enumerate(signature.inputs):
        picture = schemas.is_picture(signature, tensor)
        text = "should be image which will be resized to" if picture else "should be tensor with shape"
        fields.append(
            {
                "in": "formData",
                "name": f"input{index}",
                "description": f"{tensor.name} {text}: {schemas.shown(tensor)}",
                "required": True,
                "type": "file" if picture else "string",
            }
        )
    return fields


def _body() -> dict[str, Any]:
    return {"in": "body", "name": "body", "description": "What the model's input_fn takes.", "schema": {}}


def _page(operation: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {
        "get": {
            "operationId": operation,
            "produces": ["application/json"],
            "responses": {"200": {"description": "OK", "schema": schema}},
        }
    }


def _error() -> dict[str, Any]:
    texts = {name: {"type": "string"} for name in ("type", "message", "request_id")}
    return {"type": "object", "properties": {"code": {"type": "integer"}, **texts}}
