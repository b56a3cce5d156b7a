"""A request in any dialect: read within limits, watched, answered, counted and logged."""

import asyncio
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.serve.endpoints import Endpoint
from dragoman.serve.forms import read_parts
from dragoman.serve.job import DEADLINE, ServeJob, late
from dragoman.serve.metrics import log
from dragoman.serve.origins import check_page
from dragoman.serve.refusals import Gone, Refusal, busy, ended
from dragoman.serve.responses import JSON, EventStream
from dragoman.serve.service import Service
from dragoman.text.unreadable import is_library_error

T = TypeVar("T")

DISCARDED = 8
"""A body up to this many times the limit is read to its end before it is refused."""
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
NESTED = re.compile(r"(\w+)\[(\d+)\]\.(\w+)")
"""The name of a form field in a list of objects: `dictionaries[0].entries`."""
COMPRESSED = {"gzip", "deflate", "br", "zstd"}
CLOSE = {"connection": "close"}
FIELDS = 2000
"""Maximum number of form fields."""
OUTCOMES = {429: "overloaded", 503: "unavailable", 504: "late", 401: "unauthorized"}
"""Outcomes in logs and metrics by status; others are `answered`, `refused` or `failed`."""


@dataclass(slots=True, eq=False)
class Call(ServeJob):
    """A request that is being answered."""

    service: Service
    endpoint: Endpoint
    scope: Scope
    receive: Receive
    known: bool = False
    """Whether its key was right before its body was read, or none is needed."""
    watch: asyncio.Task[None] | None = None
    """Waits for the client to disconnect."""

    @property
    def headers(self) -> Headers:
        """Its headers."""
        return Headers(scope=self.scope)

    @property
    def named(self) -> str:
        """What its path names; bytes that are not UTF-8 become question marks."""
        (name,) = self.scope["path_params"].values()
        return str(name).encode(errors="replace").decode()

    def error(self, error: BaseException) -> Response:
        """Return the response to an error, in the format of the dialect.

        Raises the error again if the client has disconnected, or if it ends more than this request.
        """
        if isinstance(error, asyncio.CancelledError) and self.service.draining:
            error = ended()
        if isinstance(error, Gone) or not (isinstance(error, Exception) or is_library_error(error)):
            raise error
        return self.endpoint.dialect.error(self.service.refusal(error))

    def begin(self) -> None:
        """Set the deadline, and check it, the page and the key. Raises Refusal."""
        settings = self.service.settings
        if not self.endpoint.path.startswith("/health"):  # monitors request it by any name
            check_page(settings, self.endpoint.method, self.headers)
        most = max(settings.limits.deadline, settings.deadline)
        try:
            usual = most if self.endpoint.large else settings.deadline
            seconds = float(self.headers.get(DEADLINE) or usual)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= most:
            what = f"{DEADLINE} is not a number of seconds above 0, and at most {most:g}."
            do = "Correct it, or leave it out."
            raise Refusal(400, what, do, where=f"header {DEADLINE}")
        self.deadline = monotonic() + seconds
        key, scheme = self._key(), self.endpoint.dialect.scheme
        self.known = settings.keys.allows(key)
        if not (self.known or self.endpoint.open):
            what, headers = "The API key is missing or wrong.", {"www-authenticate": scheme}
            do = f"Send it as Authorization: {scheme} KEY."
            raise Refusal(401, what, do, where="header authorization", headers=headers)
        self.owner = settings.keys.owner(key)

    def _key(self) -> str:
        """Return the key from the headers or, if it may come in the body, from the query."""
        given, _, key = self.headers.get("authorization", "").partition(" ")
        if given.lower() == self.endpoint.dialect.scheme.lower() and (key := key.strip()):
            return key.encode("latin-1").decode("utf-8", "replace")  # headers are bytes
        query = self.scope["query_string"] if self.endpoint.open else b""
        return QueryParams(query).get("api_key", "")

    async def body(self) -> bytes:
        """Read the body. Raises Refusal if it is compressed, too large or too slow.

        Raises Gone if the client disconnects before its end.
        """
        if self.headers.get("content-encoding", "").lower() in COMPRESSED:
            what, where = "The body is compressed.", "header content-encoding"
            raise Refusal(415, what, "Send it as it is.", where=where, headers=CLOSE)
        limits, left = self.service.settings.limits, self.deadline - monotonic()
        try:
            async with asyncio.timeout(min(left, limits.read_seconds)):
                return await self._read("file" if self.endpoint.large else "body")
        except TimeoutError:
            if left < limits.read_seconds:
                raise late() from None
            what = f"The body did not arrive within {limits.read_seconds:g} s."
            raise Refusal(408, what, "Send it faster.", where="body", headers=CLOSE) from None

    async def _read(self, limit: Literal["file", "body"]) -> bytes:
        """Read the body; if it is refused, read on a bit, so that its client reads the answer."""
        most, bodies = getattr(self.service.settings.limits, limit), self.service.bodies
        length, body = self.headers.get("content-length", "0"), bytearray()
        size, more, kept = 0, True, True
        far_too_large = length.isdecimal() and float(length) > DISCARDED * most
        try:
            while more and not far_too_large:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                piece, more = message.get("body", b""), message.get("more_body", False)
                size += len(piece)
                kept = kept and size <= most and bodies.keep(body, piece, known=self.known)
                if not kept:
                    bodies.drop(body)
                far_too_large = size > DISCARDED * most
            if size > most or far_too_large:
                what = f"The body has more than {most:,} bytes"
                what += f", which is the server's limit `{limit}`."
                raise Refusal(413, what, "Send it in smaller parts.", where="body", headers=CLOSE)
            if not kept:
                raise busy(503, "The server is receiving as many bytes as it accepts.", 1)
            return bytes(body)
        finally:
            bodies.drop(body)

    @property
    def media_type(self) -> str:
        """The media type of the body, from its header."""
        return self.headers.get("content-type", FORM).partition(";")[0].strip().lower()

    async def read(self, kind: type[T]) -> T:
        """Decode the body as JSON of a type, or as a form if accepted. Raises Refusal."""
        if not self.media_type.endswith(("/json", "+json")):
            if self.endpoint.dialect.forms or self.endpoint.large:
                fields = await self._fields()
                return valid(lambda: msgspec.convert(fields, kind, strict=False))
            what = "The body is no JSON by its content type."
            do = f"Send JSON with the header content-type: {JSON}."
            raise Refusal(415, what, do, where="header content-type")
        body = (await self.body()).removeprefix(BOM_UTF8)
        if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise Refusal(415, "The body is in UTF-16.", "Send it in UTF-8.", where="body")
        return valid(lambda: msgspec.json.decode(body, type=kind))

    async def _fields(self) -> dict[str, Any]:
        """Return the fields of the query and of a form, whose file becomes `file`."""
        body, query = await self.body(), self.scope["query_string"]
        texts = [query, body] if self.media_type == FORM else [query]
        read = partial(parse_qsl, keep_blank_values=True, max_num_fields=FIELDS, errors="strict")

        def encoded() -> list[tuple[str, str]]:
            return [pair for text in texts for pair in read(text.decode())]

        self.characters = sum(map(len, texts))
        given = await self.service.in_thread(self, partial(valid, encoded))
        if self.media_type == MULTIPART:
            header, files = self.headers["content-type"], int(self.endpoint.large)
            parts, self.file = await read_parts(header, body, files)
            given += parts
        fields, nested = dict[str, Any](), dict[str, dict[str, dict[str, str]]]()
        for name, value in given:
            text = value.replace("\r\n", "\n")
            is_list = name in self.endpoint.dialect.lists
            if at := NESTED.fullmatch(name):
                nested.setdefault(at[1], {}).setdefault(at[2], {})[at[3]] = text
            else:
                fields[name] = [*fields.get(name, ()), text] if is_list else text
        return fields | {name: [*items.values()] for name, items in nested.items()}

    async def unless_gone(self, work: Awaitable[T]) -> T:
        """Wait as for any job; also raises Gone if the client disconnects.

        The body must have been read before.
        """
        if self.watch is None:
            self.watch = asyncio.get_running_loop().create_task(self._watch())
        return await ServeJob.unless_gone(self, work)

    def leave(self, *, answered: bool) -> None:
        """Remove the request from the queue, and stop watching its client."""
        self.service.queue.leave(self, answered=answered)
        if self.watch is not None:
            self.watch.cancel()

    async def _watch(self) -> None:
        """Wait for the client to disconnect, and then end the call."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.end(Gone())


@dataclass(frozen=True, slots=True)
class BoundPath:
    """An ASGI application for the endpoints of a path in a service, by method."""

    service: Service
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
            read = endpoint.dialect.read or Call.read
            return await endpoint.handler(call, await read(call, endpoint.takes))
        except BaseException as error:  # noqa: BLE001 -- raised again if it is no failure
            return call.error(error)


def valid(read: Callable[[], T]) -> T:
    """Return what `read` returns for a body. Raises Refusal that says where the body is wrong."""
    try:
        return read()
    except RecursionError:
        what, where = "The JSON is nested too deeply", "body"
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `")
        where = path.rstrip("`").removeprefix("$").removeprefix(".") or "body"
        what += f" at `{where}`" if where != "body" else ""
    except ValueError as error:
        cut = "was truncated"  # which msgspec also says of a lone surrogate near the end
        why = str(error).replace(cut, f"{cut}, or has half of a surrogate pair")
        what, where = f"The body cannot be read ({why})", "body"
    raise Refusal(400, f"{what}.", "Correct it; /openapi.json describes requests.", where=where)
