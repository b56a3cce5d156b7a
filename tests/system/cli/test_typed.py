"""Standard streams: lines that somebody types are answered at once, and closed ones are told."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import pytest
from tests.system.cli.command import LINES, Done, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.system.conftest import CommandLine
from tests.unit.tasks.tiny_generator import save_generator

END_OF_INPUT = b"\x04"
PATIENCE = 120
ERASE_LINE = b"\x1b[2K"
"""What a bar begins with each time that it is drawn."""


@pytest.fixture(scope="module")
def models(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model folder for each verb."""
    writer = save_generator(tmp_path_factory.mktemp("typed") / "writer")
    return {"translate": model, "generate": writer}


SHOWN = "import os; os.dup2(os.open(os.ttyname(0), os.O_RDWR | os.O_NOCTTY), 2)"


@contextmanager
def at_a_keyboard(dragoman: CommandLine, *arguments: str | Path) -> Iterator[tuple[int, IO[bytes]]]:
    """A command with its terminal, and what it prints; both sides of the first are ours."""
    terminal, its_terminal = os.openpty()
    patch, printed = dragoman.folder / "patch", dragoman.folder / "printed"
    patch.write_text(SHOWN, encoding="utf-8")
    os.mkfifo(printed)
    places = {"stdin": Path(os.ttyname(its_terminal)), "stdout": printed}
    environment = {"PATCH": str(patch), "TERM": "xterm"}
    running = dragoman.start(arguments, environment=environment, places=places)
    try:
        with printed.open("rb", buffering=0) as pipe:
            os.close(its_terminal)
            yield terminal, pipe
        running.end().succeeded()
    finally:
        os.close(terminal)


def answer(printed: IO[bytes]) -> bytes:
    """The next line, which must come without anything more being typed."""
    assert has_something(printed.fileno())
    return printed.readline()


def has_something(descriptor: int) -> bool:
    """Whether there is something to read, or the end, before patience is."""
    readable, _, _ = select.select([descriptor], [], [], PATIENCE)
    return bool(readable)


def shown_on(terminal: int) -> bytes:
    """All that was typed and shown until the command closed its side."""
    shown = b""
    try:
        while has_something(terminal) and (more := os.read(terminal, 4096)):
            shown += more
    except OSError:  # how Linux says that the other side is closed
        pass
    return shown


@pytest.mark.parametrize(
    "arguments", [("translate",), ("generate", "--json", "--seed", "1")], ids=" ".join
)
def test_each_line_is_answered(
    dragoman: CommandLine, models: dict[str, Path], arguments: tuple[str, ...]
) -> None:
    """A line comes back for each that is typed; it is told first how to end, no bar is drawn."""
    verb, *options = arguments
    with at_a_keyboard(dragoman, verb, models[verb], *options) as (terminal, printed):
        for text in (b"the cat", b"a"):
            os.write(terminal, text + b"\n")
            assert answer(printed).endswith(b"\n")
        os.write(terminal, END_OF_INPUT)
        shown = shown_on(terminal)
    assert shown.count(b"Type a line and press Enter; Ctrl-D ends the input.") == 1
    assert b"the cat" in shown
    assert ERASE_LINE not in shown


def closed(how: str, *arguments: object) -> Done:
    """Run the command with a stream closed, as the shell says it."""
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    closing = ["sh", "-c", f'exec "$@" {how}', "sh", *command]
    done = subprocess.run(closing, capture_output=True, text=True, check=False, timeout=300)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("stream", ["input", "output"])
def test_a_closed_standard_stream_is_told(model: Path, tmp_path: Path, stream: str) -> None:
    """What is read or written has to be somewhere."""
    files = [write(tmp_path / "in", LINES[:1])] if stream == "output" else []
    how = {"input": "<&-", "output": ">&-"}[stream]
    assert_refused(closed(how, "translate", model, *files), f"no standard {stream}")


def test_a_full_disk_behind_standard_output_is_told(model: Path, tmp_path: Path) -> None:
    """One sentence that names it, and exit code 1."""
    done = closed(">/dev/full", "translate", model, write(tmp_path / "in", LINES[:1]))
    told = "dragoman: Cannot write to standard output: No space left on device.\n"
    assert (done.code, done.err) == (1, told)


def test_a_demonstration_wants_to_be_seen(tmp_path: Path) -> None:
    """Without standard output it is refused before it begins."""
    assert_refused(closed(">&-", "demo", "--out", tmp_path / "demo"), "no standard output")
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full"])
def test_nobody_need_listen_to_talk(model: Path, tmp_path: Path, how: str) -> None:
    """With standard error closed, or on a full disk, the lines come, and the exit code is 0."""
    done = closed(how, "translate", model, write(tmp_path / "in", LINES[:1]))
    assert (done.code, len(done.lines)) == (0, 1)


CLOSED = "import os, sys; os.close(2); sys.stderr = None"


def test_training_is_done_in_silence(dragoman: CommandLine, tmp_path: Path) -> None:
    """With standard error closed, too, and a mistake has its exit code."""
    (tmp_path / "patch.py").write_text(CLOSED)
    start = partial(dragoman.start, environment={"PATCH": str(tmp_path / "patch.py")})
    texts = [f"{word} {other}" for word in ("one", "two", "red", "big") for other in "abcdefgh"]
    files = [write(tmp_path / name, texts) for name in ("a.en", "a.de")]
    small = ("model.d_model=16", "model.num_heads=2", "model.d_ff=16", "tokenizer.vocab_size=300")
    pairs = ("--src", files[0], "--tgt", files[1], "--out", tmp_path / "run")
    ended = start(["train", *pairs, *small, "train.max_steps=1"]).end()
    assert (ended.code, ended.said) == (0, "")
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert start(["train", "nosuch"]).end().code == 2
