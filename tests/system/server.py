"""A process that has imported everything once, and forks for each command: `python server.py`.

It reads one JSON object a line, `{"arguments": [...], "log": path}`, starts the command line in a
child whose output goes to the log, answers with the child's process id, and, when the child has
ended, with its exit code (minus the signal that killed it).
"""

import json
import os
import sys
import traceback
from pathlib import Path

import dragoman.cli.main
import dragoman.evaluate
import dragoman.tasks.translation
import dragoman.train.auto
import dragoman.train.run


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            run(request["arguments"], Path(request["log"]))
        answer(pid)
        _, status = os.waitpid(pid, 0)
        answer(os.waitstatus_to_exitcode(status))


def run(arguments: list[str], log: Path) -> None:
    """Be the command line, as far as the outside can see."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code: object = 70
    try:
        dragoman.cli.main.main(arguments)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 -- a child must not come back
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def answer(number: int) -> None:
    """Write a line."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
