"""Endpoints of the dialects: what a method and a path do, counted and logged."""

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
    """Return an error in our own form."""
    return json_response(refusal.plain(), refusal.status, refusal.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a family of clients sends its key and reads errors."""

    name: str
    error: Callable[[Refusal], Response] = plain_error
    scheme: str = "Bearer"
    """The word before the key in the header `authorization`."""
    read: Callable[[Call, Any], Awaitable[Any]] = Call.read
    """Reads the body of a request as a type."""
    forms: bool = False
    """Whether forms are read beside JSON."""
    lists: tuple[str, ...] = ()
    """Fields of a form that may be given several times."""
    fault: Any = None
    """The type of its errors, for the description, unless it is our own."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a method and a path do."""

    method: str
    path: str
    handler: Callable[..., Awaitable[Response]]
    """Answers a call, and what it `takes`; its docstring is the summary of the description."""
    takes: Any = None
    """The type of the body."""
    returns: Any = None
    """The type of the answer."""
    dialect: Dialect = field(kw_only=True)
    large: bool = field(default=False, kw_only=True)
    """Whether a file may come with it."""
    open: bool = field(default=False, kw_only=True)
    """Whether no key is asked for, or the handler asks for it."""
    always: bool = field(default=False, kw_only=True)
    """Whether it answers also while the server shuts down."""


@dataclass(frozen=True, slots=True)
class BoundPath:
    """The endpoints of a path in a service, by their methods: an ASGI application."""

    service: "Service"
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, count it, and log it."""
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
            status = response.status_code  # of a stream that ended by an error, that of the error
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
        """The answer, or the error, in the words of the dialect."""
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
