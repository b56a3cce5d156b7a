"""Servers that are measured: started, watched, and killed."""

import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, sleep

from benchmarks.http_load import Target

PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server that listens."""

    target: Target
    pid: int
    ready: float
    """Seconds from its start until it was ready."""

    def memory(self) -> float:
        """Return the MiB that it holds."""
        pages = Path(f"/proc/{self.pid}/statm").read_text("utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, slots=True)
class Launcher:
    """Starts servers of one model."""

    folders: dict[str, Path]
    """Of ours, "dragoman", and of CTranslate2."""
    beam: int
    mode: str
    """Our arithmetic."""
    log: Path

    @contextmanager
    def started(self, name: str, options: Sequence[str] = ()) -> Iterator[Server]:
        """Start ours, or a peer in a mode (`flask int8`), and kill it in the end."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        kind, _, mode = name.partition(" ")
        if kind == "dragoman":
            words = ["dragoman", "serve", str(self.folders[kind]), "--port", str(port)]
            words += ["--compute", self.mode, *options]
            target, path = Target(port, "/v1/translate", "text"), "/health/ready"
        else:
            words = ["benchmarks.serve_engines", kind, str(self.folders["ctranslate2"])]
            words += [str(self.beam), mode, str(port)]
            target, path = Target(port, "/translate", "q"), "/"
        begun = perf_counter()
        with (
            self.log.open("ab") as log,
            subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log) as process,
        ):
            try:
                while not _answers(port, path):
                    assert process.poll() is None, self.log.read_text("utf-8")
                    assert perf_counter() - begun < PATIENCE, f"{name} does not begin to answer"
                    sleep(0.01)
                yield Server(target, process.pid, perf_counter() - begun)
            finally:
                process.kill()


def _answers(port: int, path: str) -> bool:
    """Whether a server answers there; that of a peer has no such path."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return connection.getresponse().status in {200, 404}
    except OSError:
        return False
    finally:
        connection.close()


class MemoryWatch:
    """The memory of a server while a block runs."""

    def __init__(self, server: Server) -> None:
        self.samples: list[tuple[float, float]] = []
        """Seconds and MiB."""
        self._server, self._over = server, Event()
        self._thread = Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self.samples.append((perf_counter(), self._server.memory()))

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def slope(self) -> float:
        """MiB a minute, by least squares over the second half."""
        late = self.samples[len(self.samples) // 2 :]
        return 60 * statistics.linear_regression(*zip(*late, strict=True)).slope
