"""The lines of an input as they arrive."""

import gzip
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.files.arriving import InputLines
from dragoman.files.reading import open_bytes
from dragoman.tasks.lines import windows


def test_what_was_read_of_a_plain_file_is_known(tmp_path: Path) -> None:
    """To the byte, whatever was read ahead; not of what is compressed, a text, a pipe, or empty."""
    text = "".join(f"line {number}\n" for number in range(5000)).encode()
    plain, packed, pipe = tmp_path / "plain", tmp_path / "packed.gz", tmp_path / "pipe"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    (tmp_path / "empty").touch()
    with open_bytes(plain) as stream:
        lines, taken = InputLines.of(stream, "plain"), 0
        for count in (0, 1, 999, 4000):
            taken += sum(len(line) + 1 for line in islice(lines, count))
            assert lines.share() == taken / len(text)
        assert taken == len(text)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"a\nb\n",))
    writer.start()
    for unknown in (packed, pipe, tmp_path / "empty"):
        with open_bytes(unknown) as stream:
            lines = InputLines.of(stream, "unknown")
            next(lines, None)
            assert lines.share() is None
    writer.join()
    assert InputLines(iter("ab")).share() is None


@contextmanager
def piped() -> Iterator[tuple[int, InputLines[str]]]:
    """What a pipe is written by, and its lines."""
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as stream:
        yield writes, InputLines.of(stream, "the pipe")


def test_what_has_arrived_of_a_pipe_is_a_window() -> None:
    """Lines are not kept until the end, or until more have come; an incomplete one waits."""
    with piped() as (writes, lines):
        watchdog = threading.Timer(60, os.close, [writes])
        watchdog.start()  # so that a failure does not wait for ever
        taken = windows(lines, 4096)
        os.write(writes, b"one\ntwo\nthr")
        assert next(taken) == ["one", "two"]
        os.write(writes, b"ee\n")
        assert next(taken) == ["three"]
        watchdog.cancel()
        os.write(writes, b"end")
        os.close(writes)
        assert list(taken) == [["end"]]


BYTES = "\ufeff日本\r\nß\n\n\nlast".encode()


@pytest.mark.parametrize("cut", range(len(BYTES) + 1))
def test_a_pipe_has_the_lines_of_a_file(cut: int) -> None:
    """Wherever its bytes are parted, between two of a character too."""
    with piped() as (writes, lines):
        os.write(writes, BYTES[:cut])
        lines.pauses()
        os.write(writes, BYTES[cut:])
        os.close(writes)
        assert [*lines] == ["日本", "ß", "", "", "last"]


def test_a_line_of_a_pipe_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more of it is kept than that, also while the next line is waited for."""
    monkeypatch.setenv("DRAGOMAN_MAX_LINE_BYTES", "1000")
    with piped() as (writes, lines):
        os.write(writes, b"one\n" + b"x" * 5000)
        assert next(lines) == "one"
        assert not lines.pauses()
        with pytest.raises(InputError, match="line 2 is longer than 1,000 bytes"):
            next(lines)
        os.close(writes)


def test_a_file_never_pauses(tmp_path: Path) -> None:
    """Its windows are whole, compressed or not."""
    for name, opened in (("lines", open), ("lines.gz", gzip.open)):
        with opened(tmp_path / name, "wb") as file:
            file.write(b"a\n" * 300)
        with open_bytes(tmp_path / name) as stream:
            lines = InputLines.of(stream, name)
            assert [*map(len, windows(lines, 4096))] == [64, 236]
