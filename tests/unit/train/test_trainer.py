"""The order of a run: steps, reports, validations, checkpoints and the end."""

import math
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.train.made import RESULT, Watcher, make_console
from torch import nn

from dragoman.errors import DragomanError
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.train import trainer
from dragoman.train.checkpoint import checkpoints, read_state
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.progress import Progress
from dragoman.train.report import Reporter
from dragoman.train.runfolder import RunFolder
from dragoman.train.step import StepResult
from dragoman.train.trainer import Trainer, TrainResult

Go = Callable[..., "Quick"]


class Quick(Trainer):
    """A trainer with steps that do nothing and given losses."""

    losses: list[float]
    kept: list[float]
    done: list[float]
    result: TrainResult

    def take_step(self) -> StepResult:
        """Record the progress without training."""
        self.done.append(self.progress.done(self.config))
        return RESULT

    def measure(self) -> Validation:
        """Return the next loss, and a score ten times as large."""
        time.sleep(0.02)
        loss = self.losses.pop(0)
        return Validation(loss=loss, scores={"bleu": 10 * loss})

    def export(self, validation: Validation) -> None:
        """Record that the model was the best so far."""
        self.kept.append(validation.loss)

    @property
    def saved(self) -> list[int]:
        """Return the steps of the checkpoints."""
        return [int(path.name[-8:]) for path in checkpoints(self.folder.checkpoints)]


@pytest.fixture
def watcher() -> Watcher:
    """A reporter that records everything."""
    return Watcher()


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watcher: Watcher) -> Go:
    """Run to the end with these losses, one per validation."""
    places: list[dict[str, int]] = []
    batches = SimpleNamespace(
        num_batches=1,
        padding=0.0,
        largest=list,
        state_dict=dict,
        load_state_dict=lambda *state: places.append(*state[:1]),
    )
    job: Any = SimpleNamespace(model=nn.Linear(2, 2), batches=batches, loss=None)

    def run(
        *losses: float,
        progress: Progress | None = None,
        started: float = 0.0,
        reporter: Reporter = watcher,
        **config: Any,  # noqa: ANN401 -- settings of training
    ) -> Quick:
        monkeypatch.setattr(trainer, "reporters_of", lambda *_: [reporter])
        settings = {"validate_every": 5, "save_every": 5, "metric": "loss", "device": "cpu"}
        train = TrainConfig(**{**settings, "average_last": 1, "schedule": "constant", **config})
        recipe = TranslateRecipe(data=DataConfig(), train=train)
        quick = Quick(job, recipe, RunFolder(tmp_path), make_console(terminal=False)[0])
        quick.progress, quick.losses = progress or quick.progress, [*losses]
        quick.kept, quick.done = [], []
        quick.result = quick.run(time.monotonic() - started)
        return quick

    return run


def test_reporters_are_told_of_every_step_and_the_end(go: Go, watcher: Watcher) -> None:
    """Each step is reported once and in order, then the end; a finished run takes no steps."""
    quick = go(1, max_steps=4)
    assert watcher == Watcher(steps=[1, 2, 3, 4], reasons=["4 steps"], validated_at=[4])
    assert (quick.result.reason, quick.result.interrupted) == ("4 steps", False)
    assert quick.kept == [1]
    assert quick.progress.tokens == 4 * RESULT.num_tokens
    go(max_steps=4)
    assert watcher == Watcher(steps=[1, 2, 3, 4], reasons=["4 steps"] * 2, validated_at=[4])


@pytest.mark.parametrize("fails", [False, True])
def test_reporters_are_closed_whatever_ends_the_run(go: Go, *, fails: bool) -> None:
    """Reporters are closed once, last of all; Ctrl-C has its previous handler again."""

    class Closing(Watcher):
        def validated(self, progress: Progress, validation: object) -> None:
            super().validated(progress, validation)
            if fails:
                raise DragomanError("the disk is full")

        def close(self) -> None:
            self.reasons.append("closed")

    reporter, handler = Closing(), signal.getsignal(signal.SIGINT)
    with pytest.raises(DragomanError) if fails else nullcontext():
        go(1, max_steps=2, reporter=reporter)
    assert signal.getsignal(signal.SIGINT) == handler
    assert reporter.reasons == ["2 steps", "closed"]
    assert reporter.validated_at == [2]


def test_time_of_earlier_parts_counts(go: Go) -> None:
    """The minutes of a resumed run include those before."""
    quick = go(1, progress=Progress(step=7, seconds=61.0), max_minutes=1)
    assert quick.result.reason == "1 minute"
    quick = go(1, progress=Progress(step=7, seconds=59.0), max_minutes=1, max_steps=8)
    assert quick.result.reason == "8 steps"
    assert 59.0 < quick.progress.seconds < 60.0


def test_preparing_is_timed_once(go: Go) -> None:
    """The preparation is the time before the run's first step, even if it is resumed.

    So the rate of a run with `max_minutes` starts the same each time.
    """
    first = go(1, started=30.0, max_steps=2, max_minutes=1)
    assert first.done == [0.0, 0.5]
    assert 30 <= first.progress.prepared <= first.progress.seconds
    after = go(1, started=30.0, max_steps=3).progress
    assert after.prepared == first.progress.prepared
    assert after.seconds >= 60


def test_time_that_is_over_before_the_first_step(go: Go) -> None:
    """There is no model yet, so this is an error; with more time the run can continue."""
    short = r"max_minutes = 0\.1 was over before the first step, which took 30 s to prepare; set"
    with pytest.raises(DragomanError, match=short):
        go(1, started=30.0, max_minutes=0.1, ema=0.9)
    assert go(1, max_minutes=9, max_steps=1).result.reason == "1 step"


def test_validations_are_timed(go: Go) -> None:
    """The time of a validation is in the next checkpoint."""
    quick = go(1, max_steps=5)
    saved = read_state(checkpoints(quick.folder.checkpoints)[-1]).progress
    assert 0.02 <= saved.seconds <= quick.progress.seconds


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_stop_after_the_step(go: Go, number: signal.Signals) -> None:
    """Ctrl-C, SIGTERM and SIGHUP end the run after the current step, which is saved.

    There is no validation, and the previous handlers are restored.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    before = [signal.getsignal(s) for s in SIGNALS]

    class Pressing(Watcher):
        def stepped(self, progress: Progress, result: StepResult) -> None:
            super().stepped(progress, result)
            if progress.step == 3:
                signal.raise_signal(number)

    pressing = Pressing()
    quick = go(reporter=pressing, max_steps=9)
    assert pressing == Pressing(steps=[1, 2, 3], reasons=["interrupted"])
    assert quick.result.interrupted
    assert quick.saved == [3]
    assert not (quick.folder.training / "finished.json").exists()
    assert [signal.getsignal(s) for s in SIGNALS] == before


@pytest.mark.parametrize(("max_steps", "at"), [(12, [5, 10, 12]), (10, [5, 10])])
def test_validates_and_saves_at_intervals_and_at_the_end(
    go: Go, watcher: Watcher, max_steps: int, at: list[int]
) -> None:
    """Each step has at most one validation and checkpoint, even if a run is resumed at its end."""
    quick = go(5, 4, *[9] * (len(at) - 1), max_steps=max_steps, average_last=3)
    assert watcher.validated_at == quick.saved == at
    times = [path.stat().st_mtime_ns for path in checkpoints(quick.folder.checkpoints)]
    go(9, max_steps=max_steps, average_last=3)  # the score of the average
    assert [path.stat().st_mtime_ns for path in checkpoints(quick.folder.checkpoints)] == times
    assert watcher.validated_at == at


def test_patience(go: Go) -> None:
    """A run ends after this number of validations in a row without improvement."""
    quick = go(3, 2, 4, 1, 5, 5, 5, patience=2)
    assert quick.result.reason == "no better validation in 2"
    assert (quick.progress.step, quick.progress.best_step) == (30, 20)


def test_a_model_of_nan_is_never_kept(go: Go) -> None:
    """A model of NaN could not be loaded; the first finite one is the best."""
    quick = go(math.nan, 3.0, validate_every=1, max_steps=2)
    assert quick.kept == [3.0]
    assert quick.progress.best_step == 2


def test_a_run_without_a_model_fails(go: Go, tmp_path: Path) -> None:
    """A script sees its exit code, and the run is not finished."""
    with pytest.raises(DragomanError, match="no validation of the run had a finite loss"):
        go(math.nan, math.inf, validate_every=1, max_steps=2)
    assert RunFolder(tmp_path).end is None
