"""Metrics for Prometheus, and log lines; neither contains users' texts."""

import asyncio
import errno
import json
import logging
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from select import select
from typing import Any, TextIO

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from dragoman.decode import BatchReport
from dragoman.serve.admission import AdmissionQueue

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
AT_ONCE = 4096
"""Bytes that a pipe takes if it takes any (PIPE_BUF on Linux)."""
TOKENS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


class ServeMetrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self, queue: AdmissionQueue) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        gauge = partial(Gauge, namespace="dragoman", registry=registry)
        counter = partial(Counter, namespace="dragoman", registry=registry)
        histogram = partial(Histogram, namespace="dragoman", registry=registry)
        what = "Padded tokens accepted and not yet answered"
        gauge("queue_tokens", what).set_function(lambda: queue.tokens)
        what = "Padded tokens that are accepted at most"
        gauge("queue_tokens_limit", what).set_function(lambda: queue.most)
        what = "Requests accepted and not yet answered"
        gauge("queue_requests", what).set_function(lambda: len(queue.costs))
        where, model = ("dialect", "path"), ("model",)
        what = "Requests by dialect, path and outcome"
        self.requests = counter("requests", what, (*where, "outcome"))
        what = "Time from a request to its answer"
        self.seconds = histogram("request_seconds", what, where, buckets=SECONDS)
        what = "Time for which an item waits for its batch"
        self.waiting = histogram("waiting_seconds", what, model, buckets=SECONDS)
        self.rows = histogram("batch_rows", "Items of a batch", model, buckets=ROWS)
        what = "Padded tokens of a batch"
        self.tokens = histogram("batch_tokens", what, model, buckets=TOKENS)
        self.padding = counter("padding_tokens", "Tokens of batches that are padding", model)
        self.cached = counter("cached_texts", "Texts answered from the cache", model)
        what = "Models loaded, let go of, and failed to load"
        self.loads = counter("model_loads", what, (*model, "outcome"))
        self.memory = gauge("model_bytes", "Bytes of the weights in memory", model)

    def observer(self, model: str) -> Callable[[BatchReport], None]:
        """Return a function that counts the batches of a model."""
        waiting, rows = self.waiting.labels(model), self.rows.labels(model)
        tokens, padding = self.tokens.labels(model), self.padding.labels(model)

        def observe(batch: BatchReport) -> None:
            padded = len(batch.costs) * max(batch.costs)
            rows.observe(len(batch.costs))
            tokens.observe(padded)
            padding.inc(padded - sum(batch.costs))
            for seconds in batch.waited:
                waiting.observe(seconds)

        return observe

    def text(self) -> bytes:
        """Return all metrics in Prometheus' format."""
        return generate_latest(self.registry)


_LINES = deque[str](maxlen=10_000)
"""Lines that the event loop writes once its pending work is done: each write may have to wait for
the interpreter lock, which computing threads also need."""


def log(event: str, fields: Mapping[str, Any], level: str = "info") -> None:
    """Write a line of JSON to standard error; from an event loop, soon afterwards."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": now, "level": level, "event": event, **fields}
    _LINES.append(f"{json.dumps(line)}\n")
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        write_log()
    else:
        loop.call_soon(write_log)


def write_log(seconds: float = 0) -> None:
    """Write the pending log lines, as many as can be written without waiting.

    If nobody reads a pipe for that time, the newest lines stay pending.
    """
    while _LINES and sys.stderr is not None and _is_ready(sys.stderr, seconds):
        text = ""
        with suppress(IndexError):  # there are no more
            while not text or len(text) + len(_LINES[0]) <= AT_ONCE:
                text += _LINES.popleft()
        with suppress(OSError, ValueError):  # a full disk or a closed pipe fails no request
            sys.stderr.write(text)
            sys.stderr.flush()


def _is_ready(stream: TextIO, seconds: float) -> bool:
    """Return whether a stream takes AT_ONCE bytes within a time."""
    try:
        return bool(select([], [stream], [], seconds)[1])
    except (OSError, ValueError, TypeError):  # it is not a file, or this is Windows
        return True


def log_failure(error: BaseException) -> None:
    """Log the type and place of a bug, but not its message, which may contain a user's text.

    Errors of the operating system and of SQLite are logged with their names, such as ENOSPC.
    """
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    number = error.errno if isinstance(error, OSError) else None
    name = getattr(error, "sqlite_errorname", number and errno.errorcode.get(number, str(number)))
    code = {"code": name} if name else {}
    log("failure", {"error": type(error).__name__, **code, "trace": places}, "error")


def log_library(name: str, event: str) -> None:
    """Log the warnings of a library as lines with this event."""
    logger = logging.getLogger(name)
    logger.addHandler(_Handler(event))
    logger.propagate = False


def log_warnings() -> None:
    """Log Python's warnings, which are for the operator, as lines, too."""
    warnings.showwarning = lambda message, *_: log("warning", {"message": str(message)}, "warning")


class _Handler(logging.Handler):
    def __init__(self, event: str) -> None:
        super().__init__(logging.WARNING)
        self._event = event

    def emit(self, record: logging.LogRecord) -> None:
        log(self._event, {"message": record.getMessage().strip()}, record.levelname.lower())
        if record.exc_info and record.exc_info[1]:
            log_failure(record.exc_info[1])
