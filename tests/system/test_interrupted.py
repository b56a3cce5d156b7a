"""Ctrl-C while commands that only look are at work: 130, no traceback, nothing left behind."""

import os
import signal
from pathlib import Path

import pytest
from tests.system.conftest import CommandLine, Running
from tests.unit.cost.test_scaling_runs import write_run
from tests.unit.tasks.tiny import save_translator

SMALL = ("model.d_model=32", "model.num_heads=2", "model.d_ff=64", "tokenizer.vocab_size=400")


def interrupt(running: Running) -> None:
    """Press Ctrl-C: the command ends as it should."""
    ended = running.end(signal.SIGINT)
    assert ended.code == 130, ended.said
    assert "Traceback" not in ended.said


@pytest.mark.parametrize("verb", ["evaluate", "score", "data check"])
def test_reading_is_interrupted(dragoman: CommandLine, tmp_path: Path, verb: str) -> None:
    """While it waits for a text: one word."""
    folder, texts = tmp_path / "model", tmp_path / "a.txt"
    save_translator(folder)
    os.mkfifo(texts)  # whoever reads it waits for a writer
    model = [] if verb == "data check" else [folder]
    other = "--ref" if verb == "evaluate" else "--tgt"
    running = dragoman.start((*verb.split(), *model, "--src", texts, other, texts))
    assert running.wait_until(running.is_asleep), running.said()
    ended = running.end(signal.SIGINT)
    assert (ended.code, ended.said) == (130, "Interrupted.\n")


def test_timing_is_interrupted(dragoman: CommandLine, environment: dict[str, str]) -> None:
    """The temporary folder with the run that was timed is gone."""
    temporary = Path(environment["TMPDIR"])
    running = dragoman.start(("cost", "tiny", "--measure", *SMALL))
    assert running.wait_until(lambda: "batches an epoch" in running.said()), running.said()
    assert list(temporary.glob("dragoman-cost-*"))
    interrupt(running)
    assert list(temporary.glob("dragoman-cost-*")) == []


def test_a_fit_is_interrupted(dragoman: CommandLine, tmp_path: Path) -> None:
    """While it fits resampled runs; there is no picture."""
    runs, picture = tmp_path / "runs", tmp_path / "law.png"
    for width in (16, 32, 64):
        for steps in (100, 200, 400):
            write_run(runs / f"d{width}-{steps}", width, steps)
    running = dragoman.start(("cost", "--fit", runs, "--png", picture))
    assert running.wait_until(lambda: "Fitting the law" in running.said()), running.said()
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
