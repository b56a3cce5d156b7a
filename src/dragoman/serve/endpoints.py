"""Dialects, and their endpoints: handlers by method and path."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from dragoman.serve.refusals import Refusal
from dragoman.serve.responses import json_response
from dragoman.serve.schema import ErrorAnswer


def plain_error(refusal: Refusal) -> Response:
    """Return an error in our own format."""
    return json_response(refusal.plain(), refusal.status, refusal.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The conventions of a family of clients, such as how they send keys and read errors."""

    name: str
    error: Callable[[Refusal], Response] = plain_error
    scheme: str = "Bearer"
    """The scheme before the key in the `authorization` header."""
    read: Callable[[Any, Any], Awaitable[Any]] | None = None
    """Decodes the body of a call as a type; `Call.read` by default."""
    forms: bool = False
    """Whether forms are accepted in addition to JSON."""
    lists: tuple[str, ...] = ()
    """Form fields that may be repeated."""
    fault: Any = ErrorAnswer
    """The type of its errors."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The handler of a method and a path, and what it accepts."""

    method: str
    path: str
    handler: Callable[..., Awaitable[Response]]
    """Answers a call, given its body if `takes` is set; its docstring is the OpenAPI summary."""
    takes: Any = None
    """The type of the body or, for GET and DELETE, of the query."""
    returns: Any = None
    """The type of the answer."""
    dialect: Dialect = field(kw_only=True)
    large: bool = field(default=False, kw_only=True)
    """Whether it accepts a file."""
    open: bool = field(default=False, kw_only=True)
    """Whether no key is required, or the handler checks it."""
    always: bool = field(default=False, kw_only=True)
    """Whether it also answers while the server shuts down."""
