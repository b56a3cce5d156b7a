"""The process: a socket, uvicorn with time limits, and an end that loses nothing."""

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
"""Seconds between two looks whether all is answered."""
GRACE = 1
"""Seconds in which clients are told that time is up, and take what was written last."""
SAME_SIGNAL = 0.5
"""Seconds after the first signal in which another one is the same one."""


def serve(settings: ServeSettings) -> None:
    """Serve until a signal comes: then nothing that was accepted is lost.

    Raises InputError for an address that cannot be had and where no model can be used,
    KeyboardInterrupt after Ctrl-C, and SystemExit, once the log says why, where time ran out before
    all was answered, or no model could be loaded.
    """
    prepare_threads()
    service = Service(settings)
    listening = _listen(settings)
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    names = list(service.shelf.models)
    log("listening", {"address": address, "models": names, "keys": bool(settings.keys)})
    if sys.stderr is not None and sys.stderr.isatty():  # a person reads it, beside the log
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
        if sys.stderr is None:  # there is no log, and the command line tells it
            raise failure
        log("failed", {"error": failure.sentence}, "error")
        sys.exit(failure.exit_code)
    if server.signals == [signal.SIGINT]:
        raise KeyboardInterrupt


def _where(host: str, address: str) -> str:
    """Where a browser finds the page: of an address that means all of this machine, which ones.

    The one of this machine for others is found by a socket that sends nothing.
    """
    if host not in {"0.0.0.0", "::"}:  # noqa: S104 -- it is compared
        return f"{address} in a browser"
    own = "this machine's address"
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as idle:
        idle.connect(("192.0.2.1", 9))  # for documentation; what would be sent there tells the way
        own = idle.getsockname()[0]
    port = address.rpartition(":")[2]
    return f"http://localhost:{port} in a browser, on another device http://{own}:{port}"


def _listen(settings: ServeSettings) -> socket.socket:
    """Open the socket. Raises InputError where somebody else has it."""
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()  # as other servers understand it
    try:
        return socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        why = why.partition(" (while")[0]  # and then Python repeats the address
        raise InputError(
            f"{host} port {port} cannot be opened ({why}); choose another --host or --port."
        ) from error


class DrainingServer(uvicorn.Server):
    """A server that answers what it has accepted before it ends.

    The first signal makes it unready; after a delay new requests are refused; it ends when all
    others are answered, and documents fetched, or time is up. A second signal ends the process at
    once, but for one that comes with the first: `timeout` signals a process and then its group.
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
        """Why it has ended by itself."""
        log_library("uvicorn", "http")
        logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it logs bodies' faults

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- a handler's
        """Begin to end, or end."""
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
        """Handle a hangup, as of a terminal that is closed, like the others; `nohup` ignores it."""
        with super().capture_signals():
            hangup = getattr(signal, "SIGHUP", None)  # Windows has none
            is_main = current_thread() is main_thread()  # signals are for that alone
            if hangup and is_main and signal.getsignal(hangup) is not signal.SIG_IGN:
                signal.signal(hangup, self.handle_exit)
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Also end where no model could be loaded."""
        shelf = self._service.shelf
        if not self.signals and shelf.failed:
            self.failure = InputError(f"No model can be used: {shelf.reasons()}")
            return True
        return await super().on_tick(counter)

    async def _drain(self) -> None:
        """Refuse what is new, answer what was accepted, and let uvicorn close the connections."""
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
        """End the process, whatever a thread computes."""
        self._service.store.discard()
        os._exit(code)
