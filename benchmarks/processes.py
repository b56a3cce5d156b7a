"""A peer in a process of its own, which is asked and answers by lines of JSON."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

Answer = dict[str, Any]


class Engine:
    """A running process that `serve`s."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._stdin, self._stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)

    @cached_property
    def begin(self) -> Answer:
        """What it says first: `start`, seconds from the first import to a model that is loaded."""
        return self._answer()

    def ask(self, asked: Answer) -> Answer:
        """Send a line, once it has begun; return the answer."""
        assert self.begin is not None
        print(json.dumps(asked), file=self._stdin, flush=True)
        return self._answer()

    def peak(self) -> int:
        """End it; return the most memory that it held, in bytes."""
        assert self.begin is not None
        self._stdin.close()
        return int(self._answer()["peak"])

    def _answer(self) -> Answer:
        return dict(json.loads(self._stdout.readline() or "{}"))


@contextmanager
def running(module: str, arguments: Sequence[str]) -> Iterator[Engine]:
    """Start `python -m MODULE ARGUMENTS`, and leave no process behind."""
    command = [sys.executable, "-m", module, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Engine(process)
        finally:
            process.kill()


def peak_memory() -> int:
    """The most memory that this process held, in bytes; `ru_maxrss` begins with its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def serve(
    begin: Answer, answer: Callable[[Answer], Answer], peak: Callable[[], int] = peak_memory
) -> None:
    """Say what the start took, answer until the input ends, then say the peak of memory."""
    print(json.dumps(begin), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
    print(json.dumps({"peak": peak()}), flush=True)
