"""A server in a thread of this process, and clients for it."""

import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from io import StringIO
from pathlib import Path
from signal import SIGTERM
from threading import Event, Thread
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch
from urllib.parse import urlencode

import torch

from dragoman.decode import BatchReport, Prefixes
from dragoman.serve import metrics
from dragoman.serve.server import DrainingServer
from dragoman.serve.service import Service
from dragoman.serve.settings import ServeSettings

PATIENCE = 120.0
"""Maximum seconds to wait for anything on a busy machine."""

Fields = Mapping[str, str] | Sequence[tuple[str, str]]
"""Fields of a form."""

Client = Any
"""A client of another service; tests skip if it is not installed."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A response that was read to its end."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:  # noqa: ANN401 -- any JSON value
        """The body as JSON; NaN is an error."""

        def refuse(name: str) -> None:
            raise ValueError(name)

        return json.loads(self.body, parse_constant=refuse)


@dataclass(frozen=True, slots=True)
class Live:
    """A running server."""

    service: Service
    port: int
    log: StringIO = field(default_factory=StringIO)
    """What it writes to standard error, which is replaced only while it serves."""
    server: DrainingServer = field(kw_only=True, default=None)  # type: ignore[assignment] # in a process
    thread: Thread = field(default_factory=Thread)

    def end(self) -> None:
        """Start to shut down, as on a signal."""
        self.server.handle_exit(SIGTERM, None)

    def drained(self) -> dict[str, int]:
        """Wait for the server to end; return the counts of unanswered requests from its log."""
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        (line,) = (line for line in self.log.getvalue().splitlines() if '"drained"' in line)
        return {name: count for name, count in json.loads(line).items() if isinstance(count, int)}

    def connect(self) -> HTTPConnection:
        """Open a connection."""
        return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answered:
        """Send a request over a new connection."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            return taken(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answered:
        """Send a GET request."""
        return self.send("GET", path, headers=headers)

    def post(
        self,
        path: str,
        content: object,
        headers: dict[str, str] | None = None,
        method: str = "POST",
    ) -> Answered:
        """Send JSON."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.send(method, path, body, {"content-type": "application/json"} | (headers or {}))

    def form(self, path: str, fields: Fields, method: str = "POST") -> Answered:
        """Send the fields of a form."""
        headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        return self.send(method, path, urlencode(fields).encode(), headers)

    def begin(self, path: str, content: object) -> HTTPConnection:
        """Send JSON, and return the connection on which the answer will arrive."""
        connection = self.connect()
        headers = {"content-type": "application/json"}
        connection.request("POST", path, json.dumps(content), headers)
        return connection

    def texts(self, lines: list[str], options: dict[str, Any] | None = None) -> list[str]:
        """Translate lines."""
        answer = self.post("/v1/translate", {"text": lines} | (options or {}))
        assert answer.status == 200, answer.body
        return [one["text"] for one in answer.json["translations"]]

    def answering(self, name: str) -> Any:  # noqa: ANN401 -- what a model's task answers by
        """Return the object that answers for a model."""
        return self.service.shelf.models[name].answering

    def raw(self) -> socket.socket:
        """Open a socket to write raw bytes to."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def counted(self, name: str) -> float:
        """Return the value of a metric, summed over all labels."""
        lines = self.get("/metrics").body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def rest_of(raw: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    return b"".join(iter(partial(raw.recv, 4096), b""))


def form(
    fields: dict[str, str], content: bytes | None = None, name: str = "a.txt"
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a multipart form, with the file first, if any."""
    named = {f'name="{key}"': value.encode() for key, value in fields.items()}
    if content is not None:
        named = {f'name="file"; filename="{name}"': content} | named
    head = "--x\r\ncontent-disposition: form-data; {}\r\n\r\n"
    parts = [head.format(names).encode() + value for names, value in named.items()]
    body = b"\r\n".join([*parts, b"--x--\r\n"])
    return body, {"content-type": "multipart/form-data; boundary=x"}


def taken(response: HTTPResponse) -> Answered:
    """Read a response to its end."""
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answered(response.status, response.read(), headers)


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition to become true."""
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end, "waited in vain"
        sleep(0.005)


@contextmanager
def serving(*models: Path, **settings: Any) -> Iterator[Live]:  # noqa: ANN401 -- of ServeSettings
    """Serve folders until the block ends, on a free port unless one is given."""
    log = StringIO()
    with patch.object(metrics, "sys", SimpleNamespace(stderr=log)):
        service = Service(ServeSettings(models=models, **settings))
        listening = socket.create_server(("127.0.0.1", settings.get("port", 0)))
        server = DrainingServer(service)
        server._exit = Mock()  # type: ignore[method-assign] # it would end the tests
        thread = Thread(target=server.run, args=([listening],))
        live = Live(service, listening.getsockname()[1], log, thread, server=server)
        thread.start()
        try:
            until(lambda: live.get("/health/ready").status == 200)
            yield live
        finally:
            server.should_exit = True
            server.config.timeout_graceful_shutdown = 1
            thread.join(PATIENCE)
            assert not thread.is_alive()


class Steps:
    """Counts the steps of a model's searches, which it makes long, and blocks the fourth."""

    def __init__(self, live: Live, model: str) -> None:
        self.count = 0
        self.go_on = Event()
        self._translator = live.answering(model)
        self._quick = self._translator.options
        self._translator.options = replace(
            self._quick, processors=(self,), min_length=200, max_length_constant=200
        )

    def leave(self) -> None:
        """Restore the model's options for later searches."""
        self._translator.options = self._quick

    def __call__(self, logits_NV: torch.Tensor, _prefixes: Prefixes) -> torch.Tensor:
        """Count a step, and block the fourth."""
        self.count += 1
        assert self.count < 4 or self.go_on.wait(PATIENCE)
        return logits_NV


class Gate:
    """Blocks the batches of a model, and records them."""

    def __init__(self, live: Live, model: str) -> None:
        self.opened = Event()
        self.batches = list[BatchReport]()
        self._scheduler = live.answering(model).scheduler
        self._scheduler.observe = self._pass

    def waiting(self) -> int:
        """Return the number of items that are blocked or queued behind blocked ones."""
        queues = self._scheduler._queues.values()
        return sum(map(len, queues)) + sum(len(batch.costs) for batch in self.batches)

    def _pass(self, batch: BatchReport) -> None:
        self.batches.append(batch)
        assert self.opened.wait(PATIENCE)

    def fill(self, call: Callable[[], Any]) -> list[Callable[[], Any]]:
        """Make calls in the background until items must wait."""
        calls = list[Callable[[], Any]]()
        while not self._scheduler._queues:
            calls.append(in_background(call))
            until(lambda: self.waiting() >= len(calls))
        return calls


class Held:
    """A function that continues only when a test lets it, and counts how often it was called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.begun = 0
        self.go_on = Event()
        self._function = function

    def __call__(self, *given: Any, **more: Any) -> Any:  # noqa: ANN401 -- as the function's
        """Wait, then call the function."""
        self.begun += 1
        assert self.go_on.wait(PATIENCE)
        return self._function(*given, **more)


class PanicException(BaseException):
    """Like pyo3's exception of this name."""


def in_background(call: Callable[[], Any]) -> Callable[[], Any]:
    """Call in a thread; return a function that waits for the result."""
    future = Future[Any]()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 -- raised again where it is waited for
            future.set_exception(error)

    Thread(target=run).start()
    return partial(future.result, PATIENCE)
