"""Progress and messages of commands."""

import io
import json
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TextIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman.cli import progress
from dragoman.cli.output import Lines, to_json
from dragoman.cli.pipes import Talk, file_or_text, lines_from, to_stdout
from dragoman.cli.progress import pace_of, progress_of
from dragoman.errors import InputError
from dragoman.files.arriving import InputLines
from dragoman.tasks.lines import windows


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace standard error by a terminal."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


@pytest.mark.parametrize(
    "text", ["ውሃ።", "पानी।", "ماذا؟", "水。", "我喜欢茶，你呢", "注意：下雨", "はい、そうです"]
)
def test_a_word_with_a_mark_of_its_script_is_a_text(text: str) -> None:
    """Punctuation of any script makes a text; inside words too, if the script has no spaces."""
    assert file_or_text(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *("报告", "第一章：开始.txt", "资料/一、总则", "a,b", "a b.txt"),
        *("lines", "new.en", "my lines.en", "my texts/lines", "my\\lines a"),
    ],
)
def test_what_looks_like_a_name_is_no_text(name: str) -> None:
    """A misspelt file name is reported, whatever marks it has, with how to pass a text."""
    said = re.escape(f"There is no file '{name}'; if it is a text")
    with pytest.raises(InputError, match=rf"{said}.*\(echo TEXT \|"):
        file_or_text(name)


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """All items pass through and are counted."""
    terminal = screen(monkeypatch)
    with progress_of(iter("abc"), "line", total=3) as shown:
        assert list(shown) == ["a", "b", "c"]
    assert re.search(r"lines.*3/3", terminal.getvalue())


def test_nothing_is_shown_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a log nor quiet mode shows a bar."""
    with progress_of("abc", "line") as shown:
        assert list(shown) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""
    terminal = screen(monkeypatch)
    with progress_of("abc", "line", quiet=True) as shown:
        assert list(shown) == ["a", "b", "c"]
    assert terminal.getvalue() == ""


def test_lines_tell_the_progress_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log gets a line at intervals with the count, the total and the rate."""
    monkeypatch.setattr("dragoman.cli.progress.INTERVAL", 0.0)
    with progress_of("abc", "line", total=3) as shown:
        assert list(shown) == ["a", "b", "c"]
    first, *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"1 of 3 lines, .*/s, \d+:\d\d left", first)
    assert last.startswith("3 of 3 lines, ")
    with progress_of("abc", "line in pass 2", total=3) as shown:
        assert list(shown) == ["a", "b", "c"]
    assert capsys.readouterr().err.startswith("1 of 3 lines in pass 2, ")
    with progress_of("abc", "line") as shown:
        assert list(shown) == ["a", "b", "c"]
    first, second, _ = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"1 line, .*/s", first)
    assert second.startswith("2 lines, ")


@pytest.mark.parametrize(
    ("done", "seconds", "left", "shown"),
    [
        (50, 4.0, None, "12.5/s"),
        (50, 4.0, 812.5, "12.5/s, 1:05 left"),
        (1, 3600.0, 2.0, "0.000278/s, 2:00:00 left"),
        (4096, 2.0, 0.0, "2.05 k/s, 0:00 left"),
    ],
)
def test_a_pace_is_a_rate_and_the_time_left(
    done: int, seconds: float, left: float | None, shown: str
) -> None:
    """The mean rate so far gives the time left; without a total only the rate is shown."""
    assert pace_of(done, seconds, left) == shown


@given(st.integers(0, 3), st.integers(1, 9), st.integers(0, 60))
def test_the_number_of_answers_follows_from_what_was_read(
    before: int, window: int, more: int
) -> None:
    """Inputs of one size, read in windows: from the second window on it is exact.

    Where some were there before, from the start.
    """
    whole, read, seen = before + more, before, list[tuple[int, float | None]]()

    def inputs() -> Iterator[int]:
        nonlocal read
        for number in range(before, whole):
            read += 1
            yield number

    def answered() -> Iterator[int]:
        for taken in windows(inputs(), window):
            yield from taken

    def show(*, completed: int, pace: tuple[int, float | None]) -> None:
        seen.append((completed, pace[1]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "pace_of", lambda done, _, left: (done, left))
        share = lambda: read / whole if whole else None  # noqa: E731 -- it reads like one
        items = progress._timed(answered(), show, total=None, before=before, share=share)
        assert list(items) == list(range(before, whole))
    assert [completed for completed, _ in seen] == list(range(before + 1, whole + 1))
    for completed, left in seen:
        if before or completed > before + window:
            assert left == pytest.approx(whole - completed)
        else:
            assert left is None


def test_a_file_that_is_read_shows_the_time_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A terminal shows the time left as soon as the second window is read."""
    terminal, file = screen(monkeypatch), tmp_path / "file"
    file.write_text("a\n" * 3000)
    with lines_from(file) as lines:
        answers = (line for taken in windows(lines, 1000) for line in taken)
        with progress_of(answers, "line", share=lines.share) as shown:
            assert list(shown) == ["a"] * 3000
    assert re.search(r"lines.*3000/\?.*/s, 0:00 left", terminal.getvalue())


@pytest.mark.parametrize("seen", [False, True])
def test_nothing_is_drawn_over_answers(monkeypatch: pytest.MonkeyPatch, seen: bool) -> None:  # noqa: FBT001 -- a case
    """Answers that are printed on a terminal replace the progress bar."""
    terminal, printed = screen(monkeypatch), io.BytesIO()
    stdout = io.TextIOWrapper(printed)
    monkeypatch.setattr(stdout, "isatty", lambda: seen)
    monkeypatch.setattr(sys, "stdout", stdout)
    Lines(InputLines(iter(())), typed=False).write(iter("abc"), str, lambda _: ())
    assert printed.getvalue() == b"a\nb\nc\n"
    assert ("\x1b[2K" in terminal.getvalue()) == (not seen)
    assert re.search(r"3 lines in \d+\.\d s", terminal.getvalue())


def _interrupted_after(count: int) -> Iterator[str]:
    yield from "abc"[:count]
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "Interrupted before a line was finished.\n"), (1, "1 line printed; the rest begins with")],
)
def test_an_interrupt_tells_what_was_finished(
    capfd: pytest.CaptureFixture[str], count: int, told: str
) -> None:
    """The message says where the rest begins, or that nothing is finished."""
    lines = Lines(InputLines(iter(())), typed=False)
    with pytest.raises(KeyboardInterrupt):
        lines.write(_interrupted_after(count), str, lambda _: ())
    assert capfd.readouterr().err.startswith(told)


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (True, "a\\x1b[2Jb\\x9b1m\tc\nd\\r\\x07 é\\x7f"),
        (False, "a\x1b[2Jb\x9b1m\tc\nd\r\x07 é\x7f"),
    ],
)
def test_a_terminal_obeys_no_answer(
    monkeypatch: pytest.MonkeyPatch,
    seen: bool,  # noqa: FBT001 -- a case
    text: str,
) -> None:
    """A terminal shows control characters as escapes, except tabs and line feeds; files get all."""
    printed = io.BytesIO()
    stdout = io.TextIOWrapper(printed)
    monkeypatch.setattr(stdout, "isatty", lambda: seen)
    monkeypatch.setattr(sys, "stdout", stdout)
    with to_stdout(end="") as write:
        for part in ("a\x1b[2Jb\x9b", "1m\tc\nd\r\x07 é\x7f"):
            write(part)
    assert printed.getvalue().decode() == text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9) | st.just("\udcff"))
def test_json_has_no_control_characters(text: str) -> None:
    """Nor lone surrogates, which no UTF-8 has; it is read as it was."""
    shown = to_json({"text": text})
    assert {unicodedata.category(char) for char in shown} & {"Cc", "Cs"} == set()
    assert json.loads(shown) == {"text": text}


@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt])
def test_what_draws_ends_with_the_block(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Also if a traceback keeps the items alive, so that Python's exit never waits for it."""
    screen(monkeypatch)
    before = set(threading.enumerate())
    held, drawing = [], set[threading.Thread]()

    def fail() -> None:
        with progress_of("abc", "line") as shown:
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
    """A descriptor whose reader is closed."""
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize("target", [lambda: "/dev/full", dead_pipe], ids=["full", "dead"])
def test_talk_that_nobody_takes_is_dropped(target: Callable[[], str | int]) -> None:
    """Messages to a closed pipe raise nothing, in the console or when Python closes the stream."""
    with open(target(), "w", encoding="utf-8") as stream:  # noqa: PTH123 -- a descriptor is no path
        for talk in (Talk(stream), Talk(stream), Talk(None)):
            assert talk.write("words") == len("words")
            Console(file=cast("TextIO", talk)).print("more words")


def test_talk_takes_no_descriptor_and_no_open_stream() -> None:
    """Opened descriptors are closed again; the caller may have closed its stream."""
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 -- names suffice
    for _ in range(3):
        with open("/dev/full", "w", encoding="utf-8") as stream:  # noqa: PTH123 -- a device
            Talk(stream).write("words")
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208
    closed = Talk(stream)
    assert closed.write("words") == len("words")
    assert not closed.isatty()


def test_characters_that_a_stream_lacks_are_replaced() -> None:
    """Rich's ellipsis is replaced on an ASCII terminal, without delay."""
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    Talk(stream).write("long… 中\n")
    assert written.getvalue() == b"long? ?\n"


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_pipe_that_does_not_block_gets_every_line(
    monkeypatch: pytest.MonkeyPatch, buffering: int
) -> None:
    """However slowly it is read, and also if Python does not buffer."""
    to_read, to_write = os.pipe()
    os.set_blocking(to_write, False)
    lines = [f"{number} {'a' * 5000}" for number in range(100)]
    with os.fdopen(to_read, "rb") as read, ThreadPoolExecutor(1) as thread:
        with io.TextIOWrapper(os.fdopen(to_write, "wb", buffering)) as stdout:
            monkeypatch.setattr(sys, "stdout", stdout)
            with to_stdout() as write:
                received = thread.submit(read.read)
                for line in lines:
                    write(line)
        assert received.result().decode().splitlines() == lines
