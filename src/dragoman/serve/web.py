"""A request in any dialect: read within limits, watched, and abandoned when it is late."""

import asyncio
import os
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dragoman.serve.forms import Upload, read_parts
from dragoman.serve.origins import check_page
from dragoman.serve.refusals import Gone, Refusal, busy, ended
from dragoman.text.unreadable import is_library_error

if TYPE_CHECKING:
    from dragoman.serve.endpoints import Endpoint
    from dragoman.serve.service import Service

T = TypeVar("T")

DEADLINE = "x-deadline"
"""The header for the seconds within which a request must be answered."""
DISCARDED = 8
"""A body up to this many times the limit is read to its end before it is refused."""
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
COMPRESSED = {"gzip", "deflate", "br", "zstd"}
CLOSE = {"connection": "close"}
FIELDS = 2000
"""Maximum number of form fields."""
PIECE = 1 << 16
"""Bytes of a file that are sent at a time."""


def json_response(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response in JSON, which has no NaN: msgspec writes null."""
    return Response(msgspec.json.encode(content), status, headers, JSON)


class EventStream(StreamingResponse):
    """A response of server-sent events, sent as they come; an error becomes the last one."""

    media_type = "text/event-stream"

    def __init__(self, call: "Call", first: bytes, others: AsyncGenerator[bytes, None]) -> None:
        """`first` and `others` are the data of the events."""
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(self._pieces(first), headers=headers)
        self._call, self._others = call, others

    @classmethod
    async def begun(cls, call: "Call", events: AsyncGenerator[bytes, None]) -> Self:
        """Return the response once an event is ready; until then, an error has its own status."""
        return cls(call, await anext(events), events)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 -- ASGI
        """Send all events; the call itself watches whether its client disconnects."""
        async with aclosing(self._others):
            await self.stream_response(send)

    async def _pieces(self, event: bytes | None) -> AsyncGenerator[bytes, None]:
        while event is not None:
            yield b"data: " + event + b"\n\n"
            try:
                event = await anext(self._others, None)
            except BaseException as error:  # noqa: BLE001 -- raised again if it is no failure
                answer = self._call.error(error)
                event, self.status_code = bytes(answer.body), answer.status_code


class Download(Response):
    """A file, read and sent in pieces."""

    media_type = "application/octet-stream"

    def __init__(
        self, sent: Callable[[], None], file: BinaryIO, headers: Mapping[str, str]
    ) -> None:
        """`sent` is called if the client stays connected until the last piece."""
        length = {"content-length": str(os.fstat(file.fileno()).st_size)}
        super().__init__(headers={**headers, **length})
        self._sent, self._file = sent, file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file or, for HEAD, only its headers, which does not count as sent.

        Raises Gone if the client disconnects before the last piece; a client that disconnects after
        it may have read everything. `receive` returns a disconnect at once, and waits if there is
        none (ASGI, `http.disconnect`).
        """
        start = {"status": self.status_code, "headers": self.raw_headers}
        with self._file:
            await send({"type": "http.response.start", **start})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            last = self._file.read(PIECE)
            while piece := self._file.read(PIECE):
                await send({"type": "http.response.body", "body": last, "more_body": True})
                last = piece
        await send({"type": "http.response.body", "body": b"", "more_body": True})  # waits for them
        await asyncio.sleep(0)  # a connection that broke while they were written is told next
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                while (await receive())["type"] != "http.disconnect":
                    pass
                raise Gone
        await send({"type": "http.response.body", "body": last, "more_body": False})
        self._sent()


@dataclass(slots=True, eq=False, kw_only=True)
class ServeJob:
    """The document or request for which texts are computed."""

    notes: dict[str, Any] = field(default_factory=dict)
    """Fields of its log line, in addition to its outcome."""
    deadline: float = 0.0
    """When it is too late for an answer (`monotonic`)."""
    characters: int = 0
    """Characters of all its texts."""
    translated: int = 0
    """Characters of the texts that are translated."""
    over: asyncio.Future[Exception] | None = None
    """Receives the reason why the answer is no longer needed; None until something is awaited."""

    async def unless_gone(self, work: Awaitable[T]) -> T:
        """Wait for something. Raises the error given to `end`, or Refusal when it is too late.

        In both cases, what is awaited is cancelled.
        """
        task = asyncio.ensure_future(work)
        if self.over is None:
            self.over = asyncio.get_running_loop().create_future()
        try:
            waited: set[asyncio.Future[Any]] = {task, self.over}
            await asyncio.wait(
                waited,
                timeout=max(0.0, self.deadline - monotonic()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if task.done():
                return task.result()
            raise self.over.result() if self.over.done() else late()
        finally:
            task.cancel()

    def end(self, error: Exception) -> None:
        """Make what is awaited fail."""
        if self.over is not None and not self.over.done():
            self.over.set_result(error)


@dataclass(slots=True, eq=False)
class Call(ServeJob):
    """A request that is being answered."""

    service: "Service"
    endpoint: "Endpoint"
    scope: Scope
    receive: Receive
    file: Upload | None = None
    """The document in its form."""
    owner: str = ""
    """The owner of what it creates, from its key."""
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
        """Decode the body as JSON of a type, or as a form if accepted; raises as `json` does."""
        is_form = self.endpoint.dialect.forms or self.endpoint.large
        return await (self.form(kind) if is_form else self.json(kind))

    async def json(self, kind: type[T]) -> T:
        """Decode the body as JSON of a type. Raises Refusal for anything else."""
        if not self.media_type.endswith(("/json", "+json")):
            what = "The body is no JSON by its content type."
            do = f"Send JSON with the header content-type: {JSON}."
            raise Refusal(415, what, do, where="header content-type")
        body = (await self.body()).removeprefix(BOM_UTF8)
        if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise Refusal(415, "The body is in UTF-16.", "Send it in UTF-8.", where="body")
        return valid(lambda: msgspec.json.decode(body, type=kind))

    async def form(self, kind: type[T]) -> T:
        """Decode the body as JSON of a type, or as a form with its fields; raises as `json` does.

        The query may contain fields, too.
        """
        if self.media_type.endswith(("/json", "+json")):
            return await self.json(kind)
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
        fields: dict[str, Any] = {}
        for name, value in given:
            text = value.replace("\r\n", "\n")
            is_list = name in self.endpoint.dialect.lists
            fields[name] = [*fields.get(name, ()), text] if is_list else text
        return valid(lambda: msgspec.convert(fields, kind, strict=False))

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


def late() -> Refusal:
    """Return the refusal of a request that is too late."""
    what = "The request was not answered within its deadline."
    do = f"Send less at a time, or a greater {DEADLINE}."
    return Refusal(504, what, do, where=f"header {DEADLINE}")


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
