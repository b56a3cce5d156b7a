"""Lines that somebody types: each is answered before the next, and no bar is drawn over them."""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
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
    """A line comes back for each that is typed; the terminal shows what was typed, and no bar.

    It is said first that something should be typed, and how to end.
    """
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
