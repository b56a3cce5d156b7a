"""What the system tests share: the command line in processes of its own, that start at once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE = 120.0  # seconds that anything may take on a busy machine


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    """Its exit code; minus the number of the signal that killed it."""
    said: str
    """All of its output."""

    def succeeded(self) -> str:
        """Return its output; it must have succeeded."""
        assert self.code == 0, self.said
        return self.said

    def assert_refused(self, *words: str) -> None:
        """It ended with one sentence on wrong input, in which these words stand."""
        assert self.code == 2, self.said
        assert "Traceback" not in self.said
        assert self.said.splitlines()[-1].startswith("dragoman: ")
        for word in words:
            assert word in self.said


@dataclass(frozen=True, slots=True)
class Running:
    """A command that runs."""

    pid: int
    server: "subprocess.Popen[str]"
    log: Path

    def wait_until(self, condition: Callable[[], bool], pause: float = 0.0005) -> bool:
        """Wait for something to be true; False when the command ends before it is.

        It is looked at after each `pause` in seconds.
        """
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited in vain; the command said: {self.said()}")
            if _has_ended(self.pid):
                return condition()
            time.sleep(pause)
        return True

    def said(self) -> str:
        """Its output so far, which may end within a character."""
        return self.log.read_text("utf-8", errors="replace") if self.log.exists() else ""

    def is_asleep(self) -> bool:
        """Whether it waits for something; a signal that comes just before that may not wake it."""
        return ") S " in Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")

    def has_ended(self) -> bool:
        """Whether it has; nobody has waited for it yet."""
        return _has_ended(self.pid)

    def end(self, signal_number: int | None = None) -> Ended:
        """Send a signal, if one is given, and wait for the end, which a signal must bring soon."""
        if signal_number is not None:
            os.kill(self.pid, signal_number)  # until waited for, an ended child keeps its number
            self._must_end()
        return Ended(_ask(self.server, {"wait": self.pid}), self.said())

    def _must_end(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not _has_ended(self.pid):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                pytest.fail(f"the signal ended nothing; the command said: {self.said()}")
            time.sleep(0.005)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Starts `dragoman` with arguments, one at a time."""

    server: "subprocess.Popen[str]"
    folder: Path

    def start(
        self,
        arguments: Sequence[object],
        moment: int | None = None,
        number: int = signal.SIGKILL,
        environment: Mapping[str, str] | None = None,
        places: Mapping[str, Path] | None = None,
        program: str = "dragoman",
    ) -> Running:
        """Start a command; it may signal itself as it changes files for the n-th time, from 0.

        `environment` has more variables for it; one of several processes writes a log of its own.
        `places` are its `cwd`, its `stdin`, and its `stdout` where that is not the log. Of the
        program `python` the arguments are `-m MODULE ...`, `-c CODE ...` or `FILE ...`.
        """
        more = environment or {}
        log = self.folder / f"log{more.get('RANK', '')}.txt"
        log.unlink(missing_ok=True)
        request = {
            "program": program,
            "environment": dict(more),
            "arguments": list(map(str, arguments)),
            "log": str(log),
            "moment": moment,
            "signal": number,
            "places": {name: str(path) for name, path in (places or {}).items()},
        }
        return Running(_ask(self.server, request), self.server, log)

    def run(self, *arguments: object) -> Ended:
        """Run a command to its end."""
        return self.start(arguments).end()


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One thread, so that results repeat to the bit; folders of our own; no data but our own."""
    ours = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONWARNINGS": "error"}
    for name in ("XDG_CACHE_HOME", "TMPDIR"):
        ours[name] = str(tmp_path_factory.mktemp(name.lower()))
    others = {name: value for name, value in os.environ.items() if name != "DRAGOMAN_DATA"}
    return others | ours


@pytest.fixture(scope="session")
def server(environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """The process that forks."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.fixture
def dragoman(server: "subprocess.Popen[str]", tmp_path: Path) -> CommandLine:
    """The command line."""
    return CommandLine(server, tmp_path)


def _ask(server: "subprocess.Popen[str]", request: Mapping[str, object]) -> int:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def _has_ended(pid: int) -> bool:
    """Whether a child of the server has ended (it stays a zombie until it is waited for)."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
