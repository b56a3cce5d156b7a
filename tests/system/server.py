"""A process that has imported everything once, and forks for each command: `python server.py`.

It reads JSON objects, one a line, and answers each with a number. `{"arguments": [...], "log":
path, "moment": null, "signal": 9, "places": {}}` starts the command line in a child whose output
goes to the log: the answer is the child's process id. With a number n for the moment the child
sends itself the signal as it sets out to change a file after having changed n; `"environment":
{...}` are variables for it, and `PATCH` among them names a program that it runs first; places are
paths of its `cwd`, `stdin` and `stdout`. `{"wait": pid}` waits for the child's end: the answer is
its exit code (minus the signal that killed it). Until it is waited for, an ended child keeps its
process id, so that a signal sent too late goes nowhere else.
"""

import json
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch._dynamo  # noqa: F401 -- a second, with a child's first optimizer

import dragoman.cli.app
import dragoman.cli.main
import dragoman.cost.forecast
import dragoman.evaluate
import dragoman.tasks.classify.task
import dragoman.tasks.generate.task
import dragoman.tasks.pretrain.task
import dragoman.tasks.tag.task
import dragoman.tasks.translate.auto
import dragoman.tasks.translate.translator
import dragoman.train.run
from dragoman.cost import machine

machine.SIDE, machine.READ, machine.ENOUGH_SECONDS = 64, 1024, 0.0  # an estimate is foretold soon


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer(os.waitstatus_to_exitcode(status))
            continue
        pid = os.fork()
        if pid == 0:
            run(request)
        answer(pid)


def signalled(moment: int, number: int) -> Callable[[str, tuple[Any, ...]], None]:
    """Return an audit hook that signals this process before it changes a file another time."""
    left = moment

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}:
            left -= 1
            if left == -1:
                os.kill(os.getpid(), number)

    return hook


def run(request: dict[str, Any]) -> None:
    """Be the command line, as far as the outside can see."""
    places, new = request["places"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    file = os.open(request["log"], new)
    os.dup2(file, 2)
    os.dup2(os.open(places["stdout"], new) if "stdout" in places else file, 1)
    os.dup2(os.open(places.get("stdin", os.devnull), os.O_RDONLY), 0)
    os.chdir(places.get("cwd", "."))
    code: object = 70
    try:
        if (moment := request["moment"]) is not None:
            sys.addaudithook(signalled(moment, request["signal"]))
        os.environ.update(request["environment"])
        if patch := os.environ.get("PATCH"):
            runpy.run_path(patch)
        dragoman.cli.main.main(request["arguments"])
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
