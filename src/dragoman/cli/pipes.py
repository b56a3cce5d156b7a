"""Lines in, lines out: data on standard output in UTF-8, messages on standard error."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, TextIO, cast

import typer

from dragoman.errors import DragomanError, InputError, escaped
from dragoman.files.arriving import InputLines
from dragoman.files.reading import open_bytes
from dragoman.files.resuming import Write, check_writable
from dragoman.text.sentences import SPACED_ENDS, UNSPACED_ENDS

if TYPE_CHECKING:
    from rich.console import Console

SENTENCE_ENDS = tuple(SPACED_ENDS + UNSPACED_ENDS)
"""How a text ends, but no file name."""
BETWEEN = re.compile(r"[ ，。？！：；、]")
"""What separates words, or clauses of Chinese and Japanese, which have no spaces."""
PATH_LIKE = re.compile(r"[/\\]|\.\w+$")
"""A folder or a file extension."""


class Talk:
    """A stream for messages: what cannot be written is dropped, so that no work is lost.

    The stream may be closed, its disk full, or its reader gone: in `2>&1 | tee log`, Ctrl-C ends
    `tee` before us. From then on it leads nowhere, so that nothing fails when Python exits either.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write at once, if possible; characters that the stream cannot encode become `?`."""
        if self._stream is not None and not self._stream.closed:
            shown = text.encode(self.encoding, "replace").decode(self.encoding)
            try:
                self._stream.write(shown)
                self._stream.flush()
            except OSError:
                _silence(self._stream)
                self._stream = None
        return len(text)

    def flush(self) -> None:
        """Do nothing: everything is already written."""

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return self._stream is not None and not self._stream.closed and self._stream.isatty()


def _silence(stream: TextIO) -> None:
    """Redirect a stream to null: Python flushes what is left in it at exit."""
    with suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123 -- no file
        os.dup2(nowhere.fileno(), stream.fileno())


def say(text: str) -> None:
    """Print a message: a line on standard error."""
    Talk(sys.stderr).write(f"{text}\n")


@contextmanager
def telling_interrupt() -> Iterator[None]:
    """Answer Ctrl-C with a message; a context, or a decorator of verbs."""
    try:
        yield
    except KeyboardInterrupt:
        say("Interrupted.")
        raise


def talk(*, stderr: bool = True) -> "Console":
    """Make the console for a command's messages. What cannot be written to it is dropped."""
    from rich.console import Console

    stream = Talk(sys.stderr if stderr else open_stdout())
    file = cast("TextIO", stream)  # as much of a file as rich needs
    wraps = not stream.isatty()
    return Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=wraps)


def file_or_text(given: str | None) -> Path | str | None:
    """Return the file that an argument names, or the argument as a text; None means standard input.

    An argument that names no file is a text if it ends like a sentence, or if it contains a space
    or a Chinese clause mark and does not look like a path. Raises InputError for anything else,
    such as a misspelled name.
    """
    if given is None:
        return None
    if os.path.exists(given):  # noqa: PTH110 -- pathlib raises for a text longer than a name
        return Path(given)
    if given.endswith(SENTENCE_ENDS) or (BETWEEN.search(given) and not PATH_LIKE.search(given)):
        return given
    if not given:
        raise InputError("The text is empty; give a text, or the name of a file.")
    raise InputError(
        f"There is no file '{given}'; if it is a text, end it with a full stop or pipe it "
        "(echo TEXT | dragoman ...)."
    )


def is_typed(file: Path | str | None) -> bool:
    """Return whether the lines are typed at a terminal."""
    return file is None and _stdin().isatty()


def read_stdin(most: int) -> bytes:
    """Return at most this many bytes of standard input, up to its end."""
    return _stdin().buffer.read(most)


def _stdin() -> TextIO:
    """Return standard input, which the caller may have closed (`<&-`)."""
    if sys.stdin is None:
        raise InputError("There is no standard input to read; leave it open, or name a file.")
    return sys.stdin


def check_output(
    output: Path | None, model: Path, *to_read: Path | str | None, option: str = "--output"
) -> None:
    """Raise InputError for an output that is a part of the model, or as `check_writable` does."""
    if output is not None:
        check_spares_model(output, model, option)
        check_writable(output, to_read, option)


def check_spares_model(output: Path, model: Path, option: str) -> None:
    """Raise InputError for an output that is a part of the model."""
    folder, name = os.path.split(os.path.realpath(output))
    if folder == os.path.realpath(model):
        from dragoman.folder.format import PARTS

        if name in PARTS:
            raise InputError(f"{output} is a part of the model; give another {option}.")


@contextmanager
def lines_from(file: Path | str | None, *, strict: bool = True) -> Iterator[InputLines[str]]:
    """Open the lines of a file, a text or standard input; `strict` is that of `decode_lines`."""
    if file is None:
        if is_typed(file):
            end = "Ctrl-Z and Enter end" if sys.platform == "win32" else "Ctrl-D ends"
            say(f"Type a line and press Enter; {end} the input.")
        yield InputLines.of(_stdin().buffer, "standard input", strict=strict)
    elif isinstance(file, str):
        yield InputLines(iter(file.removesuffix("\n").split("\n")))
    else:
        with open_bytes(file) as stream:
            yield InputLines.of(stream, str(file), strict=strict)


@contextmanager
def to_stdout(end: str = "\n", *, styled: bool = False) -> Iterator[Write]:
    """Open standard output for texts, each written with `end`, in UTF-8 and at once.

    A terminal would obey control characters, so they are escaped there, unless the text is `styled`
    by the program itself; files and pipes get the text unchanged. A reader that has gone away
    (`| head`) ends the command quietly, with exit code 1. Raises DragomanError if nothing can be
    written, as on a full disk.
    """
    stdout = open_stdout()
    # with PYTHONUNBUFFERED there is no buffer
    raw = cast("RawIOBase", getattr(stdout.buffer, "raw", stdout.buffer))
    harmless = stdout.isatty() and not styled

    def write(text: str) -> None:
        text = escaped(text, keep="\n\t") if harmless else text
        try:
            stdout.flush()
            _write_all(raw, f"{text}{end}".encode(errors="replace"))
        except OSError as error:
            _silence(stdout)
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(1) from None
            message = f"Cannot write to standard output: {error.strerror}."
            raise DragomanError(message) from error

    yield write


def _write_all(raw: RawIOBase, content: bytes) -> None:
    """Write all of it, waiting for a pipe or terminal that another program has made non-blocking.

    An unbuffered stream may take a part of it, or nothing.
    """
    rest = memoryview(content)
    while rest:
        if (taken := raw.write(rest)) is None:
            select([], [raw], [])
        else:
            rest = rest[taken:]


def open_stdout() -> TextIO:
    """Return standard output, which the caller may have closed (`>&-`)."""
    if sys.stdout is None:
        raise InputError("There is no standard output to write to; leave it open.")
    return sys.stdout
