"""Reading lines as they arrive, from a file or from a pipe that may stay open."""

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from select import select
from time import monotonic
from typing import BinaryIO, TypeGuard, TypeVar, cast

from dragoman.files.reading import decode_lines, longest_line

Item = TypeVar("Item")
Made = TypeVar("Made")
PAUSE = 0.05
"""Seconds without a new line after which the lines received from a pipe are processed."""


@dataclass(frozen=True, slots=True)
class InputLines(Iterator[Item]):
    """An iterator over the lines of an input, or over what is made of them."""

    lines: Iterator[Item]
    stream: "BinaryIO | Pipe | None" = None
    """The stream that they are read from."""

    @classmethod
    def of(cls, stream: BinaryIO, name: str, *, strict: bool = True) -> "InputLines[str]":
        """Return the lines of an open file or standard input; arguments as in `decode_lines`."""
        arriving = _arriving(stream)
        lines = decode_lines(cast("BinaryIO", arriving), name, strict=strict)
        return InputLines(lines, arriving)

    def __next__(self) -> Item:
        return next(self.lines)

    def through(self, change: Callable[[Iterator[Item]], Iterator[Made]]) -> "InputLines[Made]":
        """Return what `change` makes of the lines, read from the same stream."""
        return InputLines(change(self.lines), self.stream)

    def pauses(self) -> bool:
        """Return whether no further line arrives for a while; always False for a file."""
        return isinstance(self.stream, Pipe) and self.stream.pauses()

    def share(self) -> float | None:
        """Return the share of bytes read so far, up to 1; None for a pipe or a compressed file."""
        stream = self.stream
        if not _is_raw(stream):
            return None
        size = os.fstat(stream.fileno()).st_size if stream.seekable() else 0
        return stream.tell() / size if size else None


class Pipe:
    """A pipe or a socket, read by lines, that can tell whether the next line has arrived."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._received = bytearray()
        self._searched = 0  # so many bytes at the start have no line feed
        self._ended = False

    def readline(self, most: int) -> bytes:
        """Wait for the next line; return it with its end, or its first `most` bytes."""
        while not (end := self._line_end()) and not self._ended and len(self._received) < most:
            self._receive(None)
        end = min(end or len(self._received), most)
        line = bytes(self._received[:end])
        del self._received[:end]
        self._searched = 0
        return line

    def pauses(self) -> bool:
        """Wait for the next line; return whether none arrives within `PAUSE`."""
        deadline, most = monotonic() + PAUSE, longest_line()
        while not self._line_end() and not self._ended and len(self._received) <= most:
            if not self._receive(deadline - monotonic()):
                return True
        return False

    def _line_end(self) -> int:
        """Return the index after the first line feed; 0 if there is none yet."""
        end = self._received.find(b"\n", self._searched) + 1
        self._searched = end - 1 if end else len(self._received)
        return end

    def _receive(self, seconds: float | None) -> bool:
        """Read what arrives within this many seconds; return whether anything did."""
        descriptor = self._stream.fileno()
        if not select([descriptor], [], [], None if seconds is None else max(0.0, seconds))[0]:
            return False
        received = os.read(descriptor, 1 << 16)
        self._received += received
        self._ended = not received
        return True


def _arriving(stream: BinaryIO) -> BinaryIO | Pipe:
    """Return a pipe or a socket as a `Pipe`, any other stream unchanged."""
    if sys.platform == "win32" or not _is_raw(stream):
        return stream
    mode = os.fstat(stream.fileno()).st_mode
    piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return Pipe(stream) if piped else stream


def _is_raw(stream: object) -> TypeGuard[io.BufferedReader]:
    """Return whether a stream reads a descriptor directly, without decompressing."""
    return isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)
