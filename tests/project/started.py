"""Python programs as `subprocess.Popen` starts them, forked from a process that knows them all."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Self

import pytest
from tests.system.conftest import CommandLine

NUMBER = count()


class Started:
    """A `python WORDS` that runs; what it says elsewhere than on standard output is in its log."""

    def __init__(
        self,
        dragoman: CommandLine,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        **streams: Any,  # noqa: ANN401 (as subprocess has them)
    ) -> None:
        self.args = command
        self.returncode: int | None = None
        folder = dragoman.folder / f"started{next(NUMBER)}"
        folder.mkdir()
        pipes = [name for name in ("stdin", "stdout") if streams.get(name) == subprocess.PIPE]
        places = {name: folder / name for name in pipes}
        for path in places.values():
            os.mkfifo(path)
        self._running = CommandLine(dragoman.server, folder).start(
            command[1:], environment=env or os.environ, places=places, program="python"
        )
        self.pid = self._running.pid
        # In the order in which the other side opens them: each waits for it.
        self.stdout = places["stdout"].open(encoding="utf-8") if "stdout" in places else None
        self.stdin = places["stdin"].open("w", encoding="utf-8") if "stdin" in places else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        return self.wait() if self._running.has_ended() else None

    def wait(self) -> int:
        """Its exit code; one that says that it failed ends the test with what it said."""
        if self.returncode is None:
            ended = self._running.end()
            self.returncode = ended.code
            if ended.code > 0:
                pytest.fail(f"{self.args} ended with {ended.code}: {ended.said}")
        return self.returncode

    def communicate(self, *_given: object, **_more: object) -> tuple[str, None]:
        """What it writes on standard output, until its end."""
        output = self.stdout.read() if self.stdout else ""
        self.wait()
        return output, None

    def kill(self) -> None:
        """End it, if it runs."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)
