"""The server process: a socket, uvicorn with time limits, and a graceful shutdown."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from threading import Timer, current_thread, main_thread
from time import monotonic
from types import FrameType

import uvicorn

from dragoman.errors import DragomanError, InputError
from dragoman.process import prepare_threads
from dragoman.serve.app import make_app
from dragoman.serve.connections import LimitedProtocol
from dragoman.serve.metrics import log, log_library
from dragoman.serve.service import Service
from dragoman.serve.settings import ServeSettings
from dragoman.wording import counted

TICK = 0.05
"""Seconds between two checks for unanswered requests."""
FILES = 4096
"""Open files that a server needs: at most 1,000 connections by default, each with a file to send,
and those of models and documents."""
GRACE = 1
"""Seconds reserved for telling clients that time is up, and for sending the last output."""
SAME_SIGNAL = 0.5
"""Seconds after the first signal within which another one counts as the same."""


def serve(settings: ServeSettings) -> None:
    """Serve until a signal arrives, then answer all requests that were accepted.

    Raises InputError if the address cannot be opened or no model can be used, KeyboardInterrupt
    after Ctrl-C, and SystemExit, after logging the reason, if time ran out before all requests were
    answered or no model could be loaded.
    """
    prepare_threads()
    _allow_files()
    service = Service(settings)
    listening = _listen(settings)
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    names = list(service.shelf.models)
    log("listening", {"address": address, "models": names, "keys": bool(settings.keys)})
    if sys.stderr is not None and sys.stderr.isatty():  # for a person, in addition to the log
        sys.stderr.write(f"Open {_where(host, address)}; Ctrl-C ends the server.\n")
    server = DrainingServer(service)
    server.run([listening])
    service.close()
    failure = server.failure
    if server.lost:
        requests = counted(server.lost, "accepted request")
        failure = DragomanError(
            f"{requests} could not be answered within --shutdown-timeout; allow more seconds."
        )
    if failure is not None:
        if sys.stderr is None:  # there is no log; the command line reports it
            raise failure
        log("failed", {"error": failure.sentence}, "error")
        sys.exit(failure.exit_code)
    if server.signals == [signal.SIGINT]:
        raise KeyboardInterrupt


def _allow_files() -> None:
    """Let this process open `FILES` files, if the system allows it: a download has two."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # Unix only

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < FILES <= hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))


def _where(host: str, address: str) -> str:
    """Return where to open the page; a wildcard address is replaced by those to use.

    This machine's address for other devices is found with a socket that sends nothing.
    """
    if host not in {"0.0.0.0", "::"}:  # noqa: S104 -- it is compared
        return f"{address} in a browser"
    own = "this machine's address"
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as idle:
        idle.connect(("192.0.2.1", 9))  # reserved for documentation; its route tells our address
        own = idle.getsockname()[0]
    port = address.rpartition(":")[2]
    return f"http://localhost:{port} in a browser, on another device http://{own}:{port}"


def _listen(settings: ServeSettings) -> socket.socket:
    """Open the socket. Raises InputError if the address is not available."""
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()  # as other servers do
    try:
        return socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        why = why.partition(" (while")[0]  # Python then repeats the address
        raise InputError(
            f"{host} port {port} cannot be opened ({why}); choose another --host or --port."
        ) from error


class DrainingServer(uvicorn.Server):
    """A server that answers accepted requests before it ends.

    The first signal makes it unready. After a delay, it refuses new requests. It ends when all
    others are answered and documents are fetched, or when time is up. A second signal ends the
    process at once, unless it arrives right after the first: `timeout` signals a process and then
    its group.
    """

    def __init__(self, service: Service) -> None:
        config = uvicorn.Config(
            make_app(service),
            http=partial(LimitedProtocol, limits=service.settings.limits),  # type: ignore[arg-type] # it makes one
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=60,
        )
        super().__init__(config)
        self._service = service
        self._draining: Future[None] | None = None
        self.signals: list[int] = []
        self._signalled = 0.0
        self.lost = 0
        """Accepted requests that were not answered."""
        self.failure: DragomanError | None = None
        """Why it ended without a signal."""
        log_library("uvicorn", "http")
        logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it logs errors in bodies

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- a handler's
        """Start to drain at the first signal; exit at the second."""
        if not self.signals:
            self._signalled = monotonic()
        elif monotonic() - self._signalled < SAME_SIGNAL:
            return
        self.signals.append(sig)
        if len(self.signals) > 1:
            self._exit(128 + sig)
        self._draining = asyncio.run_coroutine_threadsafe(self._drain(), self._loop)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Also handle a hangup, such as from a closed terminal, unless `nohup` ignores it."""
        with super().capture_signals():
            hangup = getattr(signal, "SIGHUP", None)  # Windows has none
            is_main = current_thread() is main_thread()  # only it handles signals
            if hangup and is_main and signal.getsignal(hangup) is not signal.SIG_IGN:
                signal.signal(hangup, self.handle_exit)
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Also end if no model could be loaded."""
        shelf = self._service.shelf
        if not self.signals and shelf.failed:
            self.failure = InputError(f"No model can be used: {shelf.reasons()}")
            return True
        return await super().on_tick(counter)

    async def _drain(self) -> None:
        """Refuse new requests, answer accepted ones, and let uvicorn close the connections."""
        service, settings = self._service, self._service.settings
        end = monotonic() + settings.shutdown_timeout
        service.draining = True
        log("draining", {"requests": len(service.queue.costs)})
        await asyncio.sleep(settings.drain_delay)
        service.queue.closed = True
        kept = await service.documents.pause()
        while service.queue.costs or service.documents.unfetched():
            if monotonic() >= end - GRACE:
                break
            await asyncio.sleep(TICK)
        told = {"kept": kept, "unfetched": service.documents.unfetched()}
        self.lost = service.abandon()
        log("drained", {"lost": self.lost} | told, "error" if self.lost else "info")
        left = max(TICK, end - monotonic())
        last = Timer(left, lambda: self._exit(1 if self.lost else 0))
        last.daemon = True
        last.start()
        self.config.timeout_graceful_shutdown = max(left / 2, left - GRACE)  # type: ignore[assignment] # any number
        self.should_exit = True

    def _exit(self, code: int) -> None:
        """End the process without waiting for threads."""
        self._service.store.discard()
        os._exit(code)
