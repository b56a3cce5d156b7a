"""A connection within limits of time and size, so that slow clients hold nothing up."""

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from dragoman.serve.settings import RequestLimits

CLOSED = (
    b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%s"
)
TOO_MANY = (
    b'{"error": {"what": "The server has as many connections as it allows.", '
    b'"where": "connection", "do": "Try again later."}}'
)
TOO_LONG = (
    b'{"error": {"what": "The headers are too long.", "where": "headers", '
    b'"do": "Send shorter ones."}}'
)


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which alone bounds neither headers nor the time that they take."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: RequestLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._head: int | None = 0
        """Bytes of the headers that are arriving; None while a request is answered."""
        self._late: asyncio.TimerHandle | None = None
        """Ends a connection whose headers do not arrive."""
        self._unread: asyncio.TimerHandle | None = None
        """Ends a connection whose client does not read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Begin, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._refuse(b"503 Service Unavailable", TOO_MANY)
        else:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        for timer in (self._late, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, as far as the headers are not too long."""
        while data and not self.transport.is_closing():
            room = len(data) if self._head is None else self._limits.headers - self._head
            part, data = data[:room], data[room:]
            if self._head is not None:
                self._head += len(part)
            super().data_received(part)
            if self._head is not None and self._head >= self._limits.headers:
                self._refuse(b"431 Request Header Fields Too Large", TOO_LONG)

    def on_message_begin(self) -> None:
        """Expect the headers of another request."""
        super().on_message_begin()
        if self._head is None:
            self._head = 0
            self._expect_headers()

    def on_headers_complete(self) -> None:
        """Answer the request."""
        self._head = None
        if self._late is not None:
            self._late.cancel()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Give the client some time to read."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It has."""
        if self._unread is not None:
            self._unread.cancel()
        super().resume_writing()

    def _expect_headers(self) -> None:
        self._late = self.loop.call_later(self._limits.read_seconds, self.transport.abort)

    def _refuse(self, status: bytes, body: bytes) -> None:
        self.transport.write(CLOSED % (status, len(body), body))
        self.transport.close()
