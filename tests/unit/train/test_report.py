"""The output and the log of a run."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest
from tests.unit.train.made import CONFIG, RESULT, file_size_limit, make_console

from dragoman.errors import DragomanError
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.progress import Progress
from dragoman.train.report import ConsoleReport, MetricsFile, Speed
from dragoman.train.trackers import TensorBoard

VALIDATION = Validation(
    loss=1.5, diagnostics={"source_gain": 0.4}, scores={"bleu": 12.345, "chrf": 34.5}
)
SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def make_metrics(path: Path, progress: Progress | None = None, every: int = 2) -> MetricsFile:
    """Return a metrics file that logs every other step."""
    return MetricsFile(path, replace(CONFIG, log_every=every), progress or Progress())


def test_metrics_lines(tmp_path: Path) -> None:
    """The first step, every `log_every`-th one, validations and the end have a JSON line each."""
    metrics = make_metrics(tmp_path / "training" / "metrics.jsonl")
    for step in range(1, 6):
        metrics.stepped(Progress(step=step, seconds=step, tokens=10 * step), RESULT)
    metrics.validated(Progress(step=5), VALIDATION)
    metrics.stopped(Progress(step=5), "5 steps")
    *steps, valid, stopped = lines_of(tmp_path / "training" / "metrics.jsonl")
    assert [line["step"] for line in steps] == [1, 2, 4]
    assert steps[-1]["loss"] == RESULT.loss
    assert steps[-1]["learning_rate"] == RESULT.learning_rate
    assert steps[-1]["grad_norm"] == RESULT.grad_norm
    assert [line["tokens_per_second"] for line in steps] == [None, *[pytest.approx(10.0)] * 2]
    assert valid["valid"] == {"loss": 1.5, "source_gain": 0.4, "bleu": 12.345, "chrf": 34.5}
    assert stopped["stopped"] == "5 steps"


def test_a_cut_warm_up_is_said_once() -> None:
    """It is given at the first step, or at the end of a timed run unless it is interrupted."""
    config = TrainConfig(max_steps=9, warmup_steps=9, schedule="constant")
    for minutes, reason, lines in ((None, "9 steps", 1), (9, "9 steps", 1), (9, "interrupted", 0)):
        console, file = make_console(terminal=False)
        report = ConsoleReport(console, replace(config, max_minutes=minutes))
        for step in range(1, 10):
            report.stepped(Progress(step=step), RESULT)
        report.stopped(Progress(step=9), reason)
        assert file.getvalue().count("Warning: the warm-up") == lines


def test_metrics_are_cut_where_the_run_goes_on(tmp_path: Path) -> None:
    """Lines that a resumed run writes again are removed: later steps and a partial last line.

    Damaged lines are removed too, and do not prevent resuming.
    """
    path = tmp_path / "metrics.jsonl"
    lines = [
        {"step": 0, "valid": {}},
        {"step": 2, "loss": 3.0},
        {"step": 3, "valid": {}},
        {"step": 4, "loss": 2.0},
        {"step": 4, "valid": {}},
        {"step": 4, "stopped": "interrupted"},
        {"step": 5, "loss": 1.0},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    damaged = b'{"step": 2, "lo\n[]\n{}\n\xff\0\n{"step": "1"}\n'
    path.write_bytes(damaged + text.encode() + b'{"step": 4, "lo')
    make_metrics(path, Progress(step=4, validated_step=4))
    assert lines_of(path) == lines[:5]
    assert [p.name for p in tmp_path.iterdir()] == ["metrics.jsonl"]
    make_metrics(path, Progress(step=4, validated_step=3))  # step 4's was not in the checkpoint
    assert lines_of(path) == lines[:4]
    make_metrics(path, Progress())
    assert lines_of(path) == []


def test_metrics_on_a_full_disk(tmp_path: Path) -> None:
    """A metrics file that cannot be written is reported in one sentence without a traceback."""
    metrics = make_metrics(tmp_path / "metrics.jsonl")
    full = pytest.raises(DragomanError, match=r"Cannot write .*metrics.jsonl: File too large; make")
    with file_size_limit(0), full:
        metrics.stopped(Progress(), "x")
    moved = make_metrics(tmp_path / "run" / "training" / "metrics.jsonl")
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    with pytest.raises(DragomanError, match=r"run was moved or removed while .* --out$"):
        moved.stopped(Progress(), "x")


def test_speed_between_readings() -> None:
    """The speed is measured since the last reading."""
    speed = Speed()
    assert speed.read(Progress(seconds=100.0, tokens=5000)) is None
    assert speed.read(Progress(seconds=102.0, tokens=5600)) == 300.0
    assert speed.read(Progress(seconds=102.5, tokens=9999), least_seconds=1.0) == 300.0


def test_plain_lines_without_a_terminal() -> None:
    """Without a terminal there are occasional plain lines and no control codes."""
    console, file = make_console(terminal=False)
    report = ConsoleReport(console, replace(CONFIG, warmup_steps=9))
    for step in range(1, 51):
        report.stepped(Progress(step=step, seconds=step, tokens=10 * step), RESULT)
    report.validated(Progress(step=50, best_step=50, seconds=50), VALIDATION)
    report.stopped(Progress(step=50, seconds=125.0), "50 steps")
    first, valid, end = file.getvalue().splitlines()
    assert first == "step 1: loss 2.000, rate 1.00e-03, validation: none yet"  # no speed yet
    assert valid == "step 50: validation loss 1.500, bleu 12.35, chrf 34.50 (best so far)"
    assert end == "Stopped at step 50 after 2:05: 50 steps."
    assert "\x1b" not in file.getvalue()


def test_live_line_on_a_terminal() -> None:
    """A terminal has one live line with step, loss, rate and time left, removed at the end."""
    console, file = make_console(terminal=True)
    report = ConsoleReport(console, CONFIG)
    for step in range(1, 26):
        report.stepped(Progress(step=step, seconds=2 * step, tokens=10 * step), RESULT)
    report._bar.refresh()
    live = file.getvalue()
    assert HIDE_CURSOR in live
    assert SHOW_CURSOR not in live
    last = live.rsplit("\r", 1)[-1]
    assert "25 %" in last
    assert "step 25: loss 2.000, 5 tokens/s, rate 1.00e-03, 2:30 left" in last
    report.stopped(Progress(step=25, seconds=50.0), "interrupted")
    after = file.getvalue()[len(live) :]
    assert SHOW_CURSOR in after
    assert after.rstrip().endswith("Stopped at step 25 after 0:50: interrupted.")


def test_closing_gives_the_terminal_back() -> None:
    """The cursor is restored once however the run ends; a report never shown prints nothing."""
    console, file = make_console(terminal=True)
    report = ConsoleReport(console, CONFIG)
    report.close()
    assert file.getvalue() == ""
    report.stepped(Progress(step=1), RESULT)
    report.close()
    report.close()
    assert file.getvalue().count(SHOW_CURSOR) == file.getvalue().count(HIDE_CURSOR) == 1


def test_warnings_are_printed_and_written(tmp_path: Path) -> None:
    """Warnings of a validation have a line each, and are logged."""
    console, file = make_console(terminal=False)
    validation = Validation(loss=3.0, warnings=("it is deaf", "it is mute"))
    ConsoleReport(console, CONFIG).validated(Progress(step=9), validation)
    said = file.getvalue().splitlines()[1:]
    assert said == ["Warning: it is deaf.", "Warning: it is mute."]
    make_metrics(tmp_path / "metrics.jsonl").validated(Progress(step=9), validation)
    (line,) = lines_of(tmp_path / "metrics.jsonl")
    assert line["warnings"] == ["it is deaf", "it is mute"]


def test_tensorboard(tmp_path: Path) -> None:
    """TensorBoard gets the figures of the log, flushed at each validation and at the end."""
    writer, path = Mock(spec=["add_scalar", "flush"]), tmp_path / "metrics.jsonl"
    report = MetricsFile(path, replace(CONFIG, log_every=2), Progress(), TensorBoard(writer))
    report.stepped(Progress(step=1), RESULT)
    report.stepped(Progress(step=2), RESULT)
    report.validated(Progress(step=2), VALIDATION)
    assert writer.mock_calls[-1] == call.flush()
    report.stepped(Progress(step=4), RESULT)
    report.stopped(Progress(step=4), "4 steps")
    report.close()
    assert writer.mock_calls[-1] == call.flush()
    assert writer.flush.call_count == 2
    points = [given.args for given in writer.add_scalar.call_args_list]
    assert [point for point in points if point[0] == "train/loss"] == [
        ("train/loss", 2.0, 1),
        ("train/loss", 2.0, 2),
        ("train/loss", 2.0, 4),
    ]
    assert ("valid/bleu", 12.345, 2) in points


@pytest.mark.parametrize(("loss", "warned"), [(math.nan, True), (math.inf, True), (9.0, False)])
def test_a_loss_that_is_no_number_is_warned_of(*, loss: float, warned: bool) -> None:
    """The warning comes at once, even during the warm-up."""
    console, file = make_console(terminal=False)
    ConsoleReport(console, CONFIG).validated(Progress(step=1), Validation(loss=loss))
    assert (f"Warning: the loss of this validation is {loss}" in file.getvalue()) == warned
