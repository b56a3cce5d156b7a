"""The OpenAPI 3.1 description of the server, generated from its endpoints and their types."""

import re
from collections.abc import Iterable
from inspect import getdoc
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.serve.endpoints import Endpoint
from dragoman.serve.responses import JSON
from dragoman.serve.web import FORM, MULTIPART

REFERENCE = "#/components/schemas/{name}"


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI description of endpoints."""
    endpoints = list(endpoints)
    used = [kind for e in endpoints for kind in (e.takes, e.returns, e.dialect.fault)]
    every = [kind for kind in dict.fromkeys(used) if kind is not None]
    schemas, components = msgspec.json.schema_components(every, ref_template=REFERENCE)
    schema_of = dict(zip(every, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dragoman", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "Bearer": {"type": "http", "scheme": "bearer"},
                "DeepL-Auth-Key": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "The key after the word DeepL-Auth-Key.",
                },
            },
        },
    }


def _operation(endpoint: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "The response."}
    if endpoint.returns is not None:
        answer["content"] = {JSON: {"schema": schema_of[endpoint.returns]}}
    fault = schema_of[endpoint.dialect.fault]
    error = {"description": "The error.", "content": {JSON: {"schema": fault}}}
    responses = {"200": answer, "default": error}
    found: dict[str, Any] = {
        "summary": getdoc(getattr(endpoint.handler, "func", endpoint.handler)),
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}{endpoint.path}").strip("_"),
        "tags": [endpoint.dialect.name],
        "responses": responses,
    }
    named = [("path", name, True, str) for name in re.findall(r"{(\w+)}", endpoint.path)]
    fields = () if endpoint.takes is None else msgspec.structs.fields(endpoint.takes)
    if endpoint.method in {"GET", "DELETE"}:
        named += [("query", each.name, each.required, each.type) for each in fields]
    elif fields:
        kinds = (JSON, FORM, MULTIPART) if endpoint.dialect.forms else (JSON,)
        kinds = kinds if endpoint.dialect.forms or not endpoint.large else (MULTIPART,)
        content = {kind: {"schema": schema_of[endpoint.takes]} for kind in kinds}
        needed = any(each.required or not each.default for each in fields)
        found["requestBody"] = {"required": needed, "content": content}
    found["parameters"] = [
        {"name": name, "in": place, "required": required, "schema": msgspec.json.schema(kind)}
        for place, name, required, kind in named
    ]
    found["security"] = [{}] if endpoint.open else [{}, {endpoint.dialect.scheme: []}]
    return found
