"""Ctrl-C while the command is being loaded: 130, and nothing is said."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.system.cli.command import Run, program
from tests.unit.tasks.readers import TAG, save_reader

MOMENTS = 24

LOADED_AND_INTERRUPTED = f"""
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
from dragoman.cli.main import main


def fork(run, moment):
    # Runs in a child that is interrupted at a moment: what Python does is counted.
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        count = 0

        def press(*_):
            nonlocal count
            count += 1
            if count == moment:
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                except KeyboardInterrupt as error:
                    raise RuntimeError("a library took it for its own") from error

        sys.addaudithook(press)
        run()
        print(count, flush=True)
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as stream:
        said = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def load():
    import dragoman.cli.app


fork(load, None)  # the first one to load a file may also compile and write it
code, said = fork(load, None)
last = int(said)
for moment in range(1, last, last // {MOMENTS}):
    print(fork(lambda: main(["--version"]), moment), flush=True)
print(fork(lambda: main(["--version"]), None), flush=True)
"""


def test_an_interrupt_while_loading_ends_the_command() -> None:
    """At any moment since the first line of `main`, whatever is being imported makes of it.

    What Python does before it has come to that line is beyond us: it prints a traceback of its own.
    """
    *interrupted, left_alone = program(LOADED_AND_INTERRUPTED).succeeded().lines
    assert len(interrupted) >= MOMENTS
    assert set(interrupted) == {str((130, ""))}
    assert left_alone.startswith("(0, 'dragoman ")


DROPPED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.unraisablehook = lambda _: None
import dragoman.cli.app
from dragoman.cli.main import main

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))

def run(arguments):
    Dropped()
    sys.exit(0)

dragoman.cli.app.run = run
main([])
"""


@pytest.mark.parametrize(("number", "code"), [(int(signal.SIGINT), 130), (0, 0)])
def test_an_interrupt_that_a_finaliser_drops_is_one(number: int, code: int) -> None:
    """The command goes on to its end, and its code says that it was interrupted."""
    done = program(DROPPED, number)
    assert (done.code, done.err) == (code, "")


VERB_AND_INTERRUPTED = """
import signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from dragoman.cli.main import main

main(["cost", "tiny"])
"""
HARD_TO_LOAD = """
import os, signal

try:
    os.kill(os.getpid(), {number})
    1 / 0
except BaseException as error:
    raise {error}("Error importing numpy: you should not") from error
"""


@pytest.mark.parametrize(
    ("number", "error", "code"),
    [
        (int(signal.SIGINT), "ImportError", 130),
        (int(signal.SIGINT), "RecursionError", 130),
        (0, "ImportError", 1),
    ],
)
def test_an_interrupt_while_a_verb_loads_a_library_ends_the_command(
    tmp_path: Path, number: int, error: str, code: int
) -> None:
    """Whatever the library makes of it; the same error without a press is one, and is shown."""
    library = HARD_TO_LOAD.format(number=number, error=error)
    (tmp_path / "numpy.py").write_text(library, encoding="utf-8")
    done = program(VERB_AND_INTERRUPTED, tmp_path)
    assert done.code == code, done.err
    assert ("Traceback" in done.err) == (code == 1)


LOADED_BEFORE = """
import sys
before = set(sys.modules)
import dragoman.cli.main
print(*set(sys.modules) - before)
"""


def test_little_is_loaded_before_an_interrupt_is_awaited() -> None:
    """Of ours the front door alone, no third library, none of the slow ones of Python's own."""
    loaded = set(program(LOADED_BEFORE).succeeded().out.split())
    ours = {name for name in loaded if name.startswith("dragoman")}
    assert ours == {
        "dragoman",
        "dragoman.cli",
        "dragoman.cli.main",
        "dragoman.errors",
        "dragoman.process",
        "dragoman.version",
    }
    assert not loaded & {"typing", "difflib", "threading", "contextlib", "typer"}


@pytest.mark.parametrize(
    "handler", [signal.default_int_handler, signal.SIG_IGN], ids=["raises", "ignored"]
)
def test_what_an_interrupt_does_is_as_before(
    run: Run, handler: Callable[..., object] | signal.Handlers
) -> None:
    """An interrupt that raises, raises afterwards; one that is ignored is ignored throughout."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert run("--version").code == 0
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_command_runs_in_any_thread(run: Run) -> None:
    """Where Python allows no handlers it does without."""
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(run, "--version").result().code == 0


ANSWERED = """
import sys
from dragoman.cli.main import main
try:
    main([*sys.argv[1:], "the cat sees a dog."])
finally:
    print(*sys.modules)
"""


@pytest.mark.parametrize("verb", ["translate", "inspect", "tag"])
def test_answering_loads_no_compiler(model: Path, tmp_path: Path, verb: str) -> None:
    """Of PyTorch only what it loads itself: its compiler takes a second to import.

    Nor what draws pictures, which need not be installed.
    """
    folder = save_reader(tmp_path / "tagger", TAG) if verb == "tag" else model
    loaded = set(program(ANSWERED, verb, folder).succeeded().lines[-1].split())
    assert "dragoman.decode.scheduler" in loaded
    slow = {"torch._dynamo", "torch._inductor", "sympy", "transformers", "sacrebleu", "matplotlib"}
    assert not loaded & slow
