"""Responses: JSON, server-sent events, and files."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import BinaryIO, Self

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dragoman.serve.refusals import Gone

JSON = "application/json"
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

    def __init__(
        self,
        on_error: Callable[[BaseException], Response],
        first: bytes,
        others: AsyncGenerator[bytes, None],
    ) -> None:
        """`first` and `others` are the data of the events; `on_error` is `Call.error`."""
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(self._pieces(first), headers=headers)
        self._on_error, self._others = on_error, others

    @classmethod
    async def begun(
        cls, on_error: Callable[[BaseException], Response], events: AsyncGenerator[bytes, None]
    ) -> Self:
        """Return the response once an event is ready; until then, an error has its own status."""
        return cls(on_error, await anext(events), events)

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
                answer = self._on_error(error)
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
