"""Ctrl-C while commands that only look are at work: 130, no traceback, nothing left behind."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.conftest import CommandLine, Running
from tests.unit.tasks.tiny import save_translator

SMALL = ("model.d_model=32", "model.num_heads=2", "model.d_ff=64", "tokenizer.vocab_size=400")


def interrupt(running: Running) -> None:
    """Press Ctrl-C: the command ends as it should."""
    ended = running.end(signal.SIGINT)
    assert ended.code == 130, ended.said
    assert "Traceback" not in ended.said


@contextmanager
def read_by(running: Running, pipe: Path) -> Iterator[None]:
    """A time in which a command reads from a named pipe and gets nothing."""
    writing: list[int] = []

    def is_read() -> bool:
        try:
            writing.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody has opened it yet
            return False
        return True

    assert running.wait_until(is_read), running.said()
    yield
    os.close(writing[0])


def test_timing_is_interrupted(dragoman: CommandLine, environment: dict[str, str]) -> None:
    """The temporary folder with the run that was timed is gone."""
    temporary = Path(environment["TMPDIR"])
    running = dragoman.start(("cost", "tiny", "--measure", *SMALL))
    assert running.wait_until(lambda: "batches an epoch" in running.said()), running.said()
    assert list(temporary.glob("dragoman-cost-*"))
    interrupt(running)
    assert list(temporary.glob("dragoman-cost-*")) == []


def test_a_fit_is_interrupted(dragoman: CommandLine, tmp_path: Path) -> None:
    """While it reads a run; there is no picture."""
    recipe, picture = tmp_path / "runs" / "one" / "training" / "recipe.json", tmp_path / "law.png"
    recipe.parent.mkdir(parents=True)
    os.mkfifo(recipe)
    running = dragoman.start(("cost", "--fit", tmp_path / "runs" / "one", "--png", picture))
    with read_by(running, recipe):
        assert running.wait_until(running.is_asleep), running.said()
        interrupt(running)
    assert not picture.exists()


def test_looking_is_interrupted(dragoman: CommandLine, tmp_path: Path) -> None:
    """Between what it writes: what is there is whole."""
    folder, picture, page = tmp_path / "model", tmp_path / "heads.png", tmp_path / "page.html"
    save_translator(folder)
    os.mkfifo(page)  # whoever writes to it waits for a reader
    running = dragoman.start(("inspect", folder, "the cat", "--png", picture, "--html", page))
    assert running.wait_until(lambda: f"wrote {picture}" in running.said()), running.said()
    assert running.wait_until(running.is_asleep), running.said()
    interrupt(running)
    assert picture.read_bytes().endswith(b"IEND\xaeB`\x82")
    assert {path.name for path in tmp_path.iterdir()} <= {
        "model",
        picture.name,
        page.name,
        "log.txt",
    }
