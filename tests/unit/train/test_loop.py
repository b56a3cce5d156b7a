"""The loop, its observers and its ends."""

import signal
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.train.made import CONFIG, RESULT, Watcher

from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.loop import (
    LONGEST_WARM_UP,
    Interrupt,
    Observer,
    Progress,
    Saver,
    Validator,
    fit,
    stop_rule,
)
from dragoman.train.step import StepResult


def run(
    config: TrainConfig,
    observers: list[Observer],
    progress: Progress | None = None,
    interrupt: Interrupt | None = None,
    started: float | None = None,
) -> tuple[str, Progress]:
    """Run the loop with steps that do nothing."""
    progress = progress or Progress()
    started = time.monotonic() if started is None else started

    def take_step(_: Progress) -> StepResult:
        return RESULT

    rule = stop_rule(config, interrupt or Interrupt())
    return fit(progress, take_step, rule, observers, started=started), progress


def make_validator(
    losses: list[float], every: int = 5, metric: str = "loss"
) -> tuple[Validator, Watcher, list[float]]:
    """A validator that finds the given losses one after the other; what it keeps goes to a list."""
    watcher, kept = Watcher(), list[float]()
    found = iter(losses)

    def measure() -> Validation:
        loss = next(found)
        return Validation(loss=loss, scores={"bleu": 10 * loss})

    validator = Validator(
        every=every,
        metric=metric,
        measure=measure,
        keep=lambda validation: kept.append(validation.loss),
        reporters=[watcher],
    )
    return validator, watcher, kept


def test_observers_are_told_of_every_step_and_the_end() -> None:
    """Each observer sees each step once, in order, and then the reason of the end."""
    one, two = Watcher(), Watcher()
    reason, progress = run(TrainConfig(max_steps=4), [one, two])
    assert reason == "4 steps"
    assert one == two == Watcher(steps=[1, 2, 3, 4], reasons=["4 steps"])
    assert progress.step == 4
    assert progress.tokens == 4 * RESULT.num_tokens


def test_a_run_that_is_over_takes_no_step() -> None:
    """A run that is gone on with at its end is told to stop at once."""
    watcher = Watcher()
    run(TrainConfig(max_steps=4), [watcher], Progress(step=4))
    assert watcher == Watcher(reasons=["4 steps"])


def test_time_of_earlier_parts_counts() -> None:
    """The minutes of a run that is gone on with are those of all its parts."""
    progress = Progress(step=7, seconds=61.0)
    reason, _ = run(TrainConfig(max_minutes=1), [], progress)
    assert reason == "1 minute"
    reason, after = run(TrainConfig(max_minutes=1, max_steps=8), [], Progress(step=7, seconds=59.0))
    assert reason == "8 steps"
    assert 59.0 < after.seconds < 60.0


def test_slow_observers_are_timed() -> None:
    """The time that an observer takes (a validation) is in the progress that the next one saves."""

    class Slow(Watcher):
        def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002
            time.sleep(0.02)

    class Noting(Watcher):
        def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002
            seconds.append(progress.seconds)

    seconds: list[float] = []
    run(TrainConfig(max_steps=1), [Slow(), Noting()])
    assert seconds[0] >= 0.02


@pytest.mark.parametrize(
    ("progress", "reason"),
    [
        (Progress(step=99), None),
        (Progress(step=100), "100 steps"),
        (Progress(seconds=119.9), None),
        (Progress(seconds=120.0), "2 minutes"),
        (Progress(stale=2), None),
        (Progress(stale=3), "no better validation in 3"),
    ],
)
def test_stop_reasons(progress: Progress, reason: str | None) -> None:
    """A run ends at the first limit that it reaches, and says which."""
    config = TrainConfig(max_steps=100, max_minutes=2, patience=3)
    assert stop_rule(config, Interrupt())(progress) == reason


@pytest.mark.parametrize(
    ("config", "done"),
    [
        (TrainConfig(max_steps=100), 0.25),
        (TrainConfig(max_minutes=2), 0.5),
        (TrainConfig(max_steps=100, max_minutes=2), 0.5),
        (TrainConfig(max_minutes=0.5), 1.0),
        (TrainConfig(patience=3, schedule="constant"), 0.0),
    ],
)
def test_how_much_is_done(config: TrainConfig, done: float) -> None:
    """The nearest limit decides how much of a run is over, never more than all of it."""
    assert Progress(step=25, seconds=60.0).done(config) == done


def test_preparing_is_no_part_of_the_time_for_steps() -> None:
    """The schedule begins at the first step, whatever came before it, and ends with the clock."""
    _, progress = run(TrainConfig(max_steps=1), [], started=time.monotonic() - 30)
    assert 30 <= progress.prepared <= progress.seconds
    _, after = run(TrainConfig(max_steps=2), [], progress, started=time.monotonic() - 30)
    assert after.prepared == progress.prepared
    config = TrainConfig(max_minutes=2)
    assert Progress(step=1, seconds=75.0, prepared=30.0).done(config) == 0.5
    assert Progress(step=1, seconds=30.0, prepared=30.0).done(config) == 0.0
    assert Progress(seconds=0.0, prepared=30.0).done(config) == 0.0
    assert Progress(seconds=0.0, prepared=130.0).done(config) == 0.0
    assert Progress(step=1, seconds=150.0, prepared=130.0).done(config) == 1.0
    assert Progress(seconds=60.0).done_by_clock(TrainConfig(max_steps=2)) == 0.0


@given(step=st.integers(0, 500), minutes=st.floats(0, 5))
def test_a_clock_shortens_the_warm_up(step: int, minutes: float) -> None:
    """A rate that falls to 0 rises with the steps or the clock, whichever is ahead; others with
    the steps alone, and so do all without a clock.
    """
    config = TrainConfig(max_minutes=5, max_steps=1000, warmup_steps=200)
    progress = Progress(step=step, seconds=60 * minutes)
    risen = progress.next_step(config) / config.warmup_steps
    assert risen == pytest.approx(max((step + 1) / 200, minutes / 5 / LONGEST_WARM_UP))
    for other in (replace(config, schedule="constant"), replace(config, max_minutes=None)):
        assert progress.next_step(other) == step + 1


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_stop_after_the_step(number: signal.Signals) -> None:
    """Ctrl-C, a polite kill or a closed terminal ends the run after the step.

    The old handlers come back.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    before = [signal.getsignal(s) for s in SIGNALS]
    interrupt = Interrupt()

    class Pressing(Watcher):
        def stepped(self, progress: Progress, result: StepResult) -> None:
            super().stepped(progress, result)
            if progress.step == 3:
                signal.raise_signal(number)

    watcher = Pressing()
    with interrupt.listen():
        reason, _ = run(CONFIG, [watcher], interrupt=interrupt)
    assert reason == "interrupted"
    assert watcher.steps == [1, 2, 3]
    assert [signal.getsignal(s) for s in SIGNALS] == before


def test_nohup_is_obeyed() -> None:
    """Where SIGHUP is ignored, it stays so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interrupt = Interrupt()
        with interrupt.listen():
            signal.raise_signal(signal.SIGHUP)
        assert not interrupt.pressed
    finally:
        signal.signal(signal.SIGHUP, before)


def test_second_ctrl_c_is_not_held() -> None:
    """Who presses Ctrl-C twice is out at once."""
    with Interrupt().listen():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_validates_every_so_often_and_at_the_end() -> None:
    """Validation comes after each `every`-th step and once more at the end, never twice."""
    validator, watcher, _ = make_validator([5, 4, 3, 2])
    run(TrainConfig(max_steps=12), [validator])
    assert watcher.validated_at == [5, 10, 12]
    validator, watcher, _ = make_validator([5, 4, 3, 2])
    run(TrainConfig(max_steps=10), [validator])
    assert watcher.validated_at == [5, 10]


def test_nobody_waits_for_a_validation_after_ctrl_c() -> None:
    """An interrupted run ends without one."""
    validator, watcher, _ = make_validator([])
    interrupt = Interrupt()
    interrupt.pressed = True
    run(CONFIG, [validator], Progress(step=3), interrupt)
    assert watcher.validated_at == []


def test_last_validation_is_made_up_for() -> None:
    """A run that was killed after its last checkpoint, but before its last validation, makes it."""
    validator, watcher, kept = make_validator([1.0])
    progress = Progress(step=12, validated_step=10, best={"loss": 2.0}, best_step=10)
    run(TrainConfig(max_steps=12), [validator], progress)
    assert watcher.validated_at == [12]
    assert kept == [1.0]
    assert (progress.best_step, progress.validated_step) == (12, 12)


def test_keeps_the_best() -> None:
    """The model is kept when it is better than the best so far, by the metric that was chosen."""
    validator, _, kept = make_validator([3, 4, 2, 2])
    _, progress = run(TrainConfig(max_steps=20), [validator])
    assert kept == [3, 2]
    assert (progress.best_step, progress.stale) == (15, 1)
    validator, _, kept = make_validator([3, 4, 2, 5], metric="bleu")
    _, progress = run(TrainConfig(max_steps=20), [validator])
    assert kept == [3, 4, 5]
    assert progress.best == {"loss": 5, "bleu": 50}


def test_patience() -> None:
    """A run ends after so many validations in a row without a better one."""
    validator, _, _ = make_validator([3, 2, 4, 1, 5, 5, 5])
    config = replace(CONFIG, max_steps=None, patience=2, schedule="constant")
    reason, progress = run(config, [validator])
    assert reason == "no better validation in 2"
    assert (progress.step, progress.best_step) == (30, 20)


def test_saver() -> None:
    """Checkpoints come every so often and where the run stops, never twice for one step."""

    def saves_of(max_steps: int, start: int = 0) -> list[int]:
        progress, saved = Progress(step=start), list[int]()
        note: Callable[[], None] = lambda: saved.append(progress.step)  # noqa: E731
        run(
            TrainConfig(max_steps=max_steps), [Saver(every=5, save=note, last_step=start)], progress
        )
        return saved

    assert saves_of(12) == [5, 10, 12]
    assert saves_of(10) == [5, 10]
    assert saves_of(12, start=12) == []


def test_a_model_of_nan_is_never_kept() -> None:
    """Nobody could load it; the first one with numbers is the best."""
    validator, _, kept = make_validator([float("nan"), 3.0], every=1)
    _, progress = run(TrainConfig(max_steps=2), [validator])
    assert kept == [3.0]
    assert progress.best_step == 2
