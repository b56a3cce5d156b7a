"""Endpoints of the dialects: handlers by method and path, whose requests are counted and logged."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.serve.metrics import log
from dragoman.serve.refusals import Gone, Refusal, ended
from dragoman.serve.web import Call, EventStream, json_response

if TYPE_CHECKING:
    from dragoman.serve.service import Service


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
    read: Callable[[Call, Any], Awaitable[Any]] = Call.read
    """Decodes the body of a request as a type."""
    forms: bool = False
    """Whether forms are accepted in addition to JSON."""
    lists: tuple[str, ...] = ()
    """Form fields that may be repeated."""
    fault: Any = None
    """The type of its errors in the OpenAPI description, if it is not our own."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The handler of a method and a path, and what it accepts."""

    method: str
    path: str
    handler: Callable[..., Awaitable[Response]]
    """Answers a call, given its body if `takes` is set; its docstring is the OpenAPI summary."""
    takes: Any = None
    """The type of the body."""
    returns: Any = None
    """The type of the answer."""
    dialect: Dialect = field(kw_only=True)
    large: bool = field(default=False, kw_only=True)
    """Whether it accepts a file."""
    open: bool = field(default=False, kw_only=True)
    """Whether no key is required, or the handler checks it."""
    always: bool = field(default=False, kw_only=True)
    """Whether it also answers while the server shuts down."""


@dataclass(frozen=True, slots=True)
class BoundPath:
    """An ASGI application for the endpoints of a path in a service, by method."""

    service: "Service"
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, count and log a request."""
        endpoint = self.endpoints["GET" if scope["method"] == "HEAD" else scope["method"]]
        metrics = self.service.metrics
        call, started = Call(self.service, endpoint, scope, receive), monotonic()
        outcome, status = "gone", 0
        try:
            response = await self._response(call)
            status = response.status_code
            if not isinstance(response, EventStream):
                call.leave(answered=status < 400)
            await response(scope, receive, send)
            status = response.status_code  # of a failed stream, that of the error
            kind = "failed" if status >= 500 else "refused" if status >= 400 else "answered"
            outcome = OUTCOMES.get(status, kind)
        except Gone:
            pass
        finally:
            call.leave(answered=outcome == "answered")
            seconds = monotonic() - started
            metrics.requests.labels(endpoint.dialect.name, endpoint.path, outcome).inc()
            metrics.seconds.labels(endpoint.dialect.name, endpoint.path).observe(seconds)
            fields = {"dialect": endpoint.dialect.name, "path": endpoint.path, "outcome": outcome}
            fields |= {"status": status, "seconds": round(seconds, 4)} | call.notes
            log("request", fields)
            if self.service.record_span is not None:
                self.service.record_span(scope, fields, seconds)

    async def _response(self, call: Call) -> Response:
        """Return the answer, or the error in the format of the dialect."""
        try:
            if self.service.queue.closed and not call.endpoint.always:
                raise ended()
            call.begin()
            endpoint = call.endpoint
            if endpoint.takes is None:
                return await endpoint.handler(call)
            return await endpoint.handler(call, await endpoint.dialect.read(call, endpoint.takes))
        except BaseException as error:  # noqa: BLE001 -- raised again if it is no failure
            return call.error(error)


OUTCOMES = {429: "overloaded", 503: "unavailable", 504: "late", 401: "unauthorized"}
