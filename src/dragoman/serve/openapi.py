"""The description of the server by OpenAPI 3.1, made of its endpoints and their types."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.serve.schema import ErrorAnswer
from dragoman.serve.web import Endpoint

REFERENCE = "#/components/schemas/{name}"


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the description of endpoints."""
    endpoints = list(endpoints)
    types = [kind for each in endpoints for kind in (each.takes, each.returns) if kind is not None]
    every = [*dict.fromkeys([*types, ErrorAnswer])]
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
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(endpoint: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "The answer."}
    if endpoint.returns is not None:
        answer["content"] = {"application/json": {"schema": schema_of[endpoint.returns]}}
    error: dict[str, Any] = {"description": "Why there is none."}
    if endpoint.dialect.name in {"v1", "operator"}:  # whose errors are of our own form
        error["content"] = {"application/json": {"schema": schema_of[ErrorAnswer]}}
    responses = {"200": answer, "default": error}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}{endpoint.path}").strip("_"),
        "tags": [endpoint.dialect.name],
        "responses": responses,
    }
    if endpoint.takes is not None:
        content = {"application/json": {"schema": schema_of[endpoint.takes]}}
        found["requestBody"] = {"required": True, "content": content}
    if endpoint.open:
        found["security"] = [{}]
    return found
