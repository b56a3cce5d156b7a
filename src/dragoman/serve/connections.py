"""Connections with limits on time and size, so that slow clients do not block the server."""

import asyncio
import json
import re
import socket
from collections import deque
from http import HTTPStatus
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from dragoman.serve.admission import WHOLE
from dragoman.serve.metrics import log
from dragoman.serve.refusals import Refusal
from dragoman.serve.settings import RequestLimits

CLOSED = (
    "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    "connection: close\r\n\r\n%s"
)

UNSENT = 1 << 16
"""Maximum unsent bytes that the system buffers. By default it buffers megabytes, and a client that
reads them slowly would seem not to read at all."""
OVERHEAD = 16
"""Bytes allowed after the headers, chunk framing included, as a multiple of the body limit; files
are allowed twice the file limit."""
UPGRADE = re.compile(rb"\r\nupgrade(?=:)", re.IGNORECASE)
"""The header in which Java's clients offer HTTP/2; the parser reads no body after it."""
PIPELINED = 100
"""Maximum requests on a connection that are not answered yet; it closes after their answers."""


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits on the size and time of headers, which it lacks."""

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
        self._size = 0
        """Bytes received of the current headers, or of what follows them."""
        self._last = b""
        """The last bytes received."""
        self._in_headers = True
        self._is_over = False
        """Whether nothing more is read: a request has no known end, or there are too many."""
        self._late: asyncio.TimerHandle | None = None
        """Timer that aborts the connection if its headers do not arrive."""
        self.unread: asyncio.TimerHandle | None = None
        """Timer that aborts the connection if its client does not read."""
        self._cycles = deque[RequestResponseCycle]()
        """The request that is being answered, and those queued behind it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Accept the connection unless there are too many."""
        super().connection_made(transport)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # Windows has none
            option = socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT
            transport.get_extra_info("socket").setsockopt(*option, UNSENT)
        if len(self.connections) > self._limits.connections:
            what = "The server has as many connections as it allows."
            self._refuse(Refusal(503, what, "Try again later.", where="connection"))
        else:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers, and mark the pending requests as disconnected."""
        for timer in (self._late, self.unread, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        for cycle in self._cycles:  # uvicorn tells only the last, which may not have begun
            cycle.disconnected = not cycle.response_complete
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data; refuse the request once its headers, or what follows them, are too long."""
        while data and not (self.transport.is_closing() or self._is_over):
            limits, in_headers = self._limits, self._in_headers
            longest = max(OVERHEAD * limits.body, 2 * limits.file)
            most = limits.headers if in_headers else longest
            part, data = data[: most - self._size], data[most - self._size :]
            self._size += len(part)
            if in_headers or self.cycle.response_complete:  # RFC 9110, 7.8: it may be ignored
                part = self._without_offer(part)
            super().data_received(part)
            if self._size >= most and self._in_headers == in_headers:
                status, where = (431, "headers") if in_headers else (413, "body")
                self._refuse(Refusal(status, "The request is too long.", "Send less.", where=where))

    def _without_offer(self, part: bytes) -> bytes:
        """Rename the header that offers another protocol; no length changes, nor any body."""
        before, self._last = self._last, (self._last + part)[-8:]
        head, end, rest = (before + part).partition(b"\r\n\r\n")
        return (UPGRADE.sub(b"\r\nignored", head) + end + rest)[len(before) :]

    def _unsupported_upgrade_warning(self) -> None:
        """Close the connection after the answer to a request whose offer was not renamed, such as
        one sent before earlier ones were answered: its body would be parsed as a request.
        """
        self._is_over, self.cycle.keep_alive = True, False

    def on_message_begin(self) -> None:
        """Expect the headers of the next request."""
        super().on_message_begin()
        if not self._in_headers:
            self._size, self._in_headers = 0, True
            self._expect_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Process a header; ignore those after a body."""
        if self._in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer the request, unless too many are not answered yet: those are the last."""
        self._size, self._in_headers, self._last = 0, False, b""
        if self._is_over:
            return
        if self._late is not None:
            self._late.cancel()
        while self._cycles and self._cycles[0].response_complete:
            self._cycles.popleft()
        if len(self._cycles) == PIPELINED:
            self._is_over, self._cycles[-1].keep_alive = True, False
            log("refused", {"status": 503})
        if self._is_over or self.transport.is_closing():
            return
        super()._unset_keepalive_if_required()
        super().on_headers_complete()
        self._cycles.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Add to the body of the request, unless it belongs to one that is not answered."""
        if not self._is_over:
            super().on_body(body)

    def _unset_keepalive_if_required(self) -> None:
        """Let the time of an idle connection run on: uvicorn stops it at any byte."""

    def pause_writing(self) -> None:
        """Give the client a limited time to read; if all clients together leave too much unread,
        abort the connection of the one that leaves most.
        """
        super().pause_writing()
        self._expect_reading()
        connections = cast("set[LimitedProtocol]", self.connections)
        unread = {one: one.transport.get_write_buffer_size() for one in connections}
        if sum(unread.values()) > WHOLE * max(self._limits.file, self._limits.body):
            log("unread", {"bytes": sum(unread.values())})
            max(unread, key=unread.__getitem__).transport.abort()

    def resume_writing(self) -> None:
        """Cancel the timer, as the client has read."""
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None
        super().resume_writing()

    def _expect_headers(self) -> None:
        self._late = self.loop.call_later(self._limits.read_seconds, self.transport.abort)

    def _expect_reading(self) -> None:
        """Abort the connection once its client reads nothing for `write_seconds`."""
        before = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() < before:
                self._expect_reading()
            else:
                self.transport.abort()

        self.unread = self.loop.call_later(self._limits.write_seconds, look)

    def _refuse(self, refusal: Refusal) -> None:
        log("refused", {"status": refusal.status})
        body, phrase = json.dumps(refusal.plain()), HTTPStatus(refusal.status).phrase
        self.transport.write((CLOSED % (refusal.status, phrase, len(body), body)).encode())
        self.transport.close()
