"""What a verb shows while it works."""

import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, cast

import pytest
from rich.console import Console

from dragoman.cli.pipes import Talk, progress_of


class Terminal(io.StringIO):
    """Standard error on a screen."""

    def isatty(self) -> bool:
        """Be one."""
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in the place of standard error."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


@pytest.mark.parametrize(("total", "end"), [(3, "3/3"), (None, "3/?")])
def test_progress_is_shown_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, total: int | None, end: str
) -> None:
    """All items pass, and are counted."""
    terminal = screen(monkeypatch)
    with progress_of(iter("abc"), "lines", total=total) as shown:
        assert list(shown) == ["a", "b", "c"]
    assert "lines" in terminal.getvalue()
    assert end in terminal.getvalue()


def test_nothing_is_shown_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log gets no bar, nor does somebody who types."""
    with progress_of("abc", "lines") as shown:
        assert list(shown) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""
    terminal = screen(monkeypatch)
    with progress_of("abc", "lines", quiet=True) as shown:
        assert list(shown) == ["a", "b", "c"]
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt])
def test_what_draws_ends_with_the_block(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """No thread is left to be waited for as Python exits, when it would never come to its end.

    Whoever asks for the items may still hold them then: an error keeps the frames that it left.
    """
    screen(monkeypatch)
    before = set(threading.enumerate())
    held, drawing = [], set[threading.Thread]()

    def fail() -> None:
        with progress_of("abc", "lines") as shown:
            held.append(iter(shown))
            assert next(held[0]) == "a"
            drawing.update(set(threading.enumerate()) - before)
            raise error

    with pytest.raises(error):
        fail()
    for thread in drawing:
        thread.join(timeout=60)
    assert [thread.is_alive() for thread in drawing] == [False]
    assert next(held[0]) == "b"


def dead_pipe() -> int:
    """A descriptor whose reader has gone."""
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize("target", [lambda: "/dev/full", dead_pipe], ids=["full", "dead"])
def test_talk_that_nobody_takes_is_dropped(target: Callable[[], str | int]) -> None:
    """No error comes of it, not from the console either, nor when Python closes the stream."""
    with open(target(), "w", encoding="utf-8") as stream:  # noqa: PTH123 -- a descriptor is no path
        for talk in (Talk(stream), Talk(stream), Talk(None)):
            assert talk.write("words") == len("words")
            Console(file=cast("TextIO", talk)).print("more words")


def test_talk_takes_no_descriptor_and_no_open_stream() -> None:
    """What led nowhere is closed again; a program around us may have closed its stream."""
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 -- names suffice
    for _ in range(3):
        with open("/dev/full", "w", encoding="utf-8") as stream:  # noqa: PTH123 -- a device
            Talk(stream).write("words")
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208
    closed = Talk(stream)
    assert closed.write("words") == len("words")
    assert not closed.isatty()


def test_talk_is_written_at_once(tmp_path: Path) -> None:
    """What can be written is."""
    with (tmp_path / "log").open("w") as stream:
        Talk(stream).write("words")
        assert (tmp_path / "log").read_text() == "words"


def test_characters_that_a_stream_lacks_are_replaced() -> None:
    """A table that rich cuts with an ellipsis is shown in an ASCII terminal, too."""
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    Talk(stream).write("long… 中\n")
    assert written.getvalue() == b"long? ?\n"
