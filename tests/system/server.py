"""A process that has imported everything once, and forks for each command: `python server.py`.

It reads JSON objects, one a line, and answers each with a number. `{"arguments": [...], "log":
path, "moment": null, "signal": 9, "places": {}}` starts the command line in a child whose output
goes to the log: the answer is the child's process id. With a number n for the moment the child
sends itself the signal as it sets out to change a file after having changed n; `"environment":
{...}` are variables for it, and `PATCH` among them names a program that it runs first; places are
paths of its `cwd`, `stdin` and `stdout`. `{"wait": pid}` waits for the child's end: the answer is
its exit code (minus the signal that killed it). Until it is waited for, an ended child keeps its
process id, so that a signal sent too late goes nowhere else. With `"program": "python"` the
arguments are those of Python: `-m MODULE ...`, `-c CODE ...` or `FILE ...`.
"""

import gc
import json
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic.type_adapter  # noqa: F401 -- typer's, with a child's first words
import sacrebleu.tokenizers.tokenizer_13a  # noqa: F401
import torch._dynamo  # noqa: F401 -- a second, with a child's first optimizer

import dragoman.cli.app
import dragoman.cli.main
import dragoman.cost.forecast
import dragoman.cost.scaling_report  # with scipy, whose import a signal would only end
import dragoman.evaluate
import dragoman.tasks.classify.task
import dragoman.tasks.generate.task
import dragoman.tasks.pretrain.task
import dragoman.tasks.recipes
import dragoman.tasks.tag.task
import dragoman.tasks.translate.auto
import dragoman.tasks.translate.measuring
import dragoman.tasks.translate.task
import dragoman.tasks.translate.translator
import dragoman.train.run
from dragoman.cost import machine, measure
from dragoman.train.job import Check, unchecked
from dragoman.train.recipe import RunRecipe


def forecast(recipe: RunRecipe) -> tuple[list[str], Check]:  # noqa: ARG001 (as ours has it)
    """Estimate nothing: it takes longer than a small run; see tests/system/cli/test_cost.py."""
    return ["Estimate"], unchecked


dragoman.cost.forecast.forecast = forecast
machine.SIDE, machine.READ, machine.ENOUGH_SECONDS, measure.MOST_SECONDS = 64, 1024, 0.0, 1.0


def main() -> None:
    """Serve until standard input ends."""
    gc.freeze()  # or each child would look through, and copy, what all have
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
        if request["program"] == "python":
            interpret(request["arguments"])
        else:
            dragoman.cli.main.main(request["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 -- a child must not come back
        traceback.print_exc()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a test may have closed one
        stream.flush()
    os._exit(code if isinstance(code, int) else 1)


def interpret(words: list[str]) -> None:
    """Be `python WORDS`."""
    first, *rest = words
    if first == "-m":
        sys.argv, sys.path[0] = rest, str(Path.cwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        exec(rest[0], {"__name__": "__main__"})  # noqa: S102 (it is a test's)
    else:
        sys.argv, sys.path[0] = words, str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


def answer(number: int) -> None:
    """Write a line."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
