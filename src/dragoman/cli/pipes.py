"""Lines in, lines out: data on standard output in UTF-8, talk on standard error."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, TypeVar

import typer

from dragoman.data.files import decode_lines, open_bytes
from dragoman.errors import InputError

__all__ = [
    "Write",
    "check_apart",
    "is_typed",
    "lines_from",
    "say",
    "to_file_or_stdout",
    "with_progress",
]

Item = TypeVar("Item")
Write = Callable[[str], None]
"""Writes one line, or text as it is."""


def say(text: str) -> None:
    """Talk: a line on standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def is_typed(file: Path | None) -> bool:
    """Whether the lines come from somebody's keyboard."""
    return file is None and _stdin().isatty()


def _stdin() -> TextIO:
    """Standard input, which whoever started the command may have closed (``<&-``)."""
    if sys.stdin is None:
        raise InputError("There is no standard input; give a file to translate.")
    return sys.stdin


def check_apart(file: Path | None, output: Path | None) -> None:
    """Raise InputError where both are one file: opening the output empties it."""
    if file is None or output is None or not (file.exists() and output.exists()):
        return
    if output.samefile(file):
        raise InputError(f"{output} is the file to read; give another --output.")


@contextmanager
def lines_from(file: Path | None) -> Iterator[Iterator[str]]:
    """The lines of a file, compressed or not, or of standard input."""
    if file is None:
        yield decode_lines(_stdin().buffer, "standard input")
    else:
        with open_bytes(file) as stream:
            yield decode_lines(stream, str(file))


@contextmanager
def to_file_or_stdout(file: Path | None) -> Iterator[Write]:
    """What writes a line, in UTF-8, to ``file`` or, at once, to standard output.

    A reader that has gone away (``| head``) ends the command quietly, with exit code 1.
    """
    if file is not None:
        try:
            stream = file.open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise InputError(f"Cannot write {file}: {error.strerror}.") from error
        with stream:
            yield lambda line: print(line, file=stream)
        return
    with to_stdout() as write:
        yield lambda line: write(f"{line}\n")


@contextmanager
def to_stdout() -> Iterator[Write]:
    """What writes text as it is, in UTF-8 and at once, to standard output."""
    try:
        yield _to_stdout
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more
        raise typer.Exit(1) from None


def _to_stdout(text: str) -> None:
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def with_progress(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Pass the items on; on a terminal a bar or a count on standard error shows how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = BarColumn() if total is not None else TextColumn("")
    columns = (TextColumn(what), bar, MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield from progress.track(items, total=total)
