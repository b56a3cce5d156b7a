"""Lines in, lines out: data on standard output in UTF-8, messages on standard error."""

import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, TextIO, TypeVar, cast

import typer

from dragoman.errors import DragomanError, InputError, escaped
from dragoman.files.reading import COMPRESSED, decode_lines, longest_line, open_bytes
from dragoman.files.writing import names_device

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item")
Made = TypeVar("Made")
PAUSE = 0.05
"""Seconds without a line after which the lines of a pipe that have arrived are answered."""
SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
"""How a text ends, and no name of a file."""
PATH_LIKE = re.compile(r"[/\\]|\.\w+$")
"""A folder or an ending."""
Write = Callable[[str], None]
"""Writes one result, line or piece of text."""


class Talk:
    """A stream for messages: what cannot be written is dropped, so that no work is lost with it.

    It may be closed, its disk full, or its reader gone: Ctrl-C ends `tee` in `2>&1 | tee log`
    before us. From then on it leads nowhere, so that nothing fails as Python exits either.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write at once, if that is possible; characters that the stream lacks become `?`."""
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
        """Do nothing: all is written."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream is not None and not self._stream.closed and self._stream.isatty()


def _silence(stream: TextIO) -> None:
    """Redirect a stream to null: Python flushes what is left in it as it exits."""
    with suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123 -- no file
        os.dup2(nowhere.fileno(), stream.fileno())


def say(text: str) -> None:
    """Print a message: a line on standard error."""
    Talk(sys.stderr).write(f"{text}\n")


def talk(*, stderr: bool = True) -> "Console":
    """Make the console for a command's messages. What cannot be written to it is dropped."""
    from rich.console import Console

    stream = Talk(sys.stderr if stderr else open_stdout())
    file = cast("TextIO", stream)  # as far as rich needs one
    return Console(file=file, highlight=False, soft_wrap=not stream.isatty())


def file_or_text(given: str | None) -> Path | str | None:
    """The file that an argument names, or the text that it is; None means standard input.

    A text is what names no file and ends as a sentence does, or has a space and looks like no path.
    Raises InputError for the rest, such as a misspelt name.
    """
    if given is None:
        return None
    if os.path.exists(given):  # noqa: PTH110 -- pathlib raises for a text longer than a name
        return Path(given)
    if given.endswith(SENTENCE_ENDS) or (" " in given and not PATH_LIKE.search(given)):
        return given
    raise InputError(
        f"There is no file '{given}'; if it is a text, end it with a full stop or pipe it "
        "(echo TEXT | dragoman ...)."
    )


def is_typed(file: Path | str | None) -> bool:
    """Whether the lines are typed at a terminal."""
    return file is None and _stdin().isatty()


def _stdin() -> TextIO:
    """Standard input, which the caller may have closed (`<&-`)."""
    if sys.stdin is None:
        raise InputError("There is no standard input to read; leave it open, or name a file.")
    return sys.stdin


def check_output(
    output: Path | None, model: Path, *to_read: Path | str | None, option: str = "--output"
) -> None:
    """Validate an output path before anything is read or written.

    Raises InputError if it is one of the files to read, which would be lost (None means standard
    input, a string is a text), a file of the model, a folder, in a folder that does not exist,
    read-only, or named like a compressed file, which it will not be.
    """
    if output is None:
        return
    check_spares_model(output, model, option)
    try:
        wrong = _wrong_output(output, to_read)
    except OSError as error:
        wrong = f"Cannot write {output}: {error.strerror}"
    if wrong:
        raise InputError(f"{wrong}; give another {option}.")
    if output.suffix in COMPRESSED:
        raise InputError(
            f"{output} would contain plain text despite its name; give {option} without "
            f"{output.suffix}."
        )


def check_free(output: Path | None) -> None:
    """Raise InputError for a file with content, which writing would replace."""
    if output is None or names_device(output) or not output.is_file():
        return
    if output.stat().st_size:
        raise InputError(
            f"{output} exists already; add --overwrite to replace it, or give another --output."
        )


def _wrong_output(output: Path, to_read: Iterable[Path | str | None]) -> str | None:
    """Why the file cannot be an output, if it cannot."""
    if output.is_dir():
        return f"Cannot write {output}: it is a folder"
    if not output.parent.is_dir():
        return f"Cannot write {output}: there is no folder {output.parent}"
    if output.is_file() and any(_is_of(file, output) for file in to_read):
        return f"{output} is the file to read"
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        return f"Cannot write {output}: it is read-only"
    return None


def _is_of(file: Path | str | None, output: Path) -> bool:
    """Whether what is read, which may be standard input, is the output."""
    if file is not None:
        return isinstance(file, Path) and file.exists() and output.samefile(file)
    with suppress(OSError):  # some that are put in its place have no descriptor
        return os.path.samestat(os.fstat(_stdin().fileno()), output.stat())
    return False


def check_spares_model(output: Path, model: Path, option: str) -> None:
    """Raise InputError for an output that is a part of the model."""
    folder, name = os.path.split(os.path.realpath(output))
    if folder == os.path.realpath(model):
        from dragoman.folder.format import PARTS

        if name in PARTS:
            raise InputError(f"{output} is a part of the model; give another {option}.")


class Pipe(io.RawIOBase):
    """The lines of a pipe or a socket, which tells whether the next one has arrived."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._received = bytearray()
        self._searched = 0  # so many of these bytes have no line feed
        self._ended = False

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line with its end, or its first `size` bytes; wait until it is there."""
        most = sys.maxsize if size is None or size < 0 else size
        while not (end := self._line_end()) and not self._ended and len(self._received) < most:
            self._receive(None)
        end = min(end or len(self._received), most)
        line = bytes(self._received[:end])
        del self._received[:end]
        self._searched = 0
        return line

    def pauses(self) -> bool:
        """Wait for the next line, and return whether none has arrived within `PAUSE`."""
        deadline, most = monotonic() + PAUSE, longest_line()
        while not self._line_end() and not self._ended and len(self._received) <= most:
            if not self._receive(deadline - monotonic()):
                return True
        return False

    def _line_end(self) -> int:
        """The place after the first line feed; 0 while there is none."""
        end = self._received.find(b"\n", self._searched) + 1
        self._searched = end - 1 if end else len(self._received)
        return end

    def _receive(self, seconds: float | None) -> bool:
        """Read what arrives within this many seconds, and return whether something did."""
        descriptor = self._stream.fileno()
        if not select([descriptor], [], [], None if seconds is None else max(0.0, seconds))[0]:
            return False
        received = os.read(descriptor, 1 << 16)
        self._received += received
        self._ended = not received
        return True


def _arriving(stream: BinaryIO) -> "BinaryIO | Pipe":
    """A pipe or a socket as a `Pipe`, any other stream as it is."""
    if sys.platform == "win32" or not _is_raw(stream):
        return stream
    mode = os.fstat(stream.fileno()).st_mode
    piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return Pipe(stream) if piped else stream


def _is_raw(stream: object) -> bool:
    """Whether a stream reads a descriptor as it is, without decompressing."""
    return isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)


@dataclass(frozen=True, slots=True)
class InputLines(Iterator[Item]):
    """The lines of an input, or what is made of them, one after another."""

    lines: Iterator[Item]
    stream: BinaryIO | Pipe | None = None
    """What they are read from."""

    def __next__(self) -> Item:
        """Return the next one."""
        return next(self.lines)

    def through(self, change: Callable[[Iterator[Item]], Iterator[Made]]) -> "InputLines[Made]":
        """Return what is made of the lines, read from the same stream."""
        return InputLines(change(self.lines), self.stream)

    def pauses(self) -> bool:
        """Whether no further line arrives for a while; never in a file."""
        return isinstance(self.stream, Pipe) and self.stream.pauses()

    def share(self) -> float | None:
        """How much of the bytes has been read, up to 1; None for a pipe and a compressed file."""
        stream = self.stream
        if stream is None or not _is_raw(stream):
            return None
        size = os.fstat(stream.fileno()).st_size if stream.seekable() else 0
        return stream.tell() / size if size else None


@contextmanager
def lines_from(file: Path | str | None, *, strict: bool = True) -> Iterator[InputLines[str]]:
    """The lines of a file, of a text, or of standard input; `strict` as in `decode_lines`."""
    if file is None:
        if is_typed(file):
            end = "Ctrl-Z and Enter end" if sys.platform == "win32" else "Ctrl-D ends"
            say(f"Type a line and press Enter; {end} the input.")
        yield _decoding(_stdin().buffer, "standard input", strict=strict)
    elif isinstance(file, str):
        yield InputLines(iter(file.removesuffix("\n").split("\n")))
    else:
        with open_bytes(file) as stream:
            yield _decoding(stream, str(file), strict=strict)


def _decoding(stream: BinaryIO, name: str, *, strict: bool) -> InputLines[str]:
    arriving = _arriving(stream)
    lines = decode_lines(cast("BinaryIO", arriving), name, strict=strict)
    return InputLines(lines, arriving)


@contextmanager
def to_stdout(end: str = "\n", *, styled: bool = False) -> Iterator[Write]:
    """What writes text with an end to it, in UTF-8 and at once, to standard output.

    A terminal would obey control characters, so it gets escapes of them, unless the text is
    `styled` by the program itself; files and pipes get the text as it is. A reader that has gone
    away (`| head`) ends the command quietly, with exit code 1. Raises DragomanError where nothing
    can be written, as on a full disk.
    """
    stdout = open_stdout()
    harmless = stdout.isatty() and not styled

    def write(text: str) -> None:
        text = escaped(text, keep="\n\t") if harmless else text
        try:
            stdout.buffer.write(f"{text}{end}".encode(errors="replace"))
            stdout.buffer.flush()
        except OSError as error:
            _silence(stdout)
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(1) from None
            message = f"Cannot write to standard output: {error.strerror}."
            raise DragomanError(message) from error

    yield write


def open_stdout() -> TextIO:
    """Standard output, which the caller may have closed (`>&-`)."""
    if sys.stdout is None:
        raise InputError("There is no standard output to write to; leave it open.")
    return sys.stdout
