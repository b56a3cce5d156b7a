"""The progress of a run, and its limits."""

import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cost.recipes import find_recipe
from dragoman.train.config import TrainConfig
from dragoman.train.progress import LONGEST_WARM_UP, Interrupt, Progress, handling_ends


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
def test_limits(progress: Progress, reason: str | None) -> None:
    """A run ends at the first limit that it reaches, and names it."""
    assert progress.limit(TrainConfig(max_steps=100, max_minutes=2, patience=3)) == reason


AT = Progress(step=25, seconds=60.0)
TWO_MINUTES = TrainConfig(max_minutes=2)


@pytest.mark.parametrize(
    ("progress", "config", "done"),
    [
        (AT, TrainConfig(max_steps=100), 0.25),
        (AT, TWO_MINUTES, 0.5),
        (AT, TrainConfig(max_steps=100, max_minutes=2), 0.5),
        (AT, TrainConfig(max_minutes=0.5), 1.0),
        (AT, TrainConfig(patience=3, schedule="constant"), 0.0),
        (Progress(step=1, seconds=75.0, prepared=30.0), TWO_MINUTES, 0.5),
        (Progress(step=1, seconds=30.0, prepared=30.0), TWO_MINUTES, 0.0),
        (Progress(seconds=0.0, prepared=30.0), TWO_MINUTES, 0.0),
        (Progress(seconds=0.0, prepared=130.0), TWO_MINUTES, 0.0),
        (Progress(step=1, seconds=150.0, prepared=130.0), TWO_MINUTES, 1.0),
    ],
)
def test_how_much_is_done(progress: Progress, config: TrainConfig, done: float) -> None:
    """The progress is that of the nearest limit, and at most 1.

    Time counts from the first step, without the preparation, up to the time limit.
    """
    assert progress.done(config) == done


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


WARMING = TrainConfig(max_steps=20, warmup_steps=20)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (WARMING, "start"),
        (replace(WARMING, schedule="noam"), "start"),
        (replace(WARMING, warmup_steps=19), ""),
        (replace(WARMING, max_steps=4), ""),  # a smoke run of 4 steps has no fifth
        (replace(WARMING, max_minutes=60), "end"),
        (replace(WARMING, max_minutes=1), ""),  # the time limit shortens it
        (replace(WARMING, max_minutes=1, schedule="constant", max_steps=None), "end"),
        (TrainConfig(patience=1, schedule="constant"), ""),
    ],
)
def test_a_run_that_ends_before_its_warm_up_is_told(config: TrainConfig, told: str) -> None:
    """The warning comes as soon as the cut is certain."""
    started = Progress(step=1).cut_short(config)
    ended = Progress(step=20, seconds=60.0).cut_short(config, at_end=True)
    assert [bool(started), bool(ended)] == [told == "start", told == "end"]
    for sentence in filter(None, [started, ended]):
        assert "in the 20 steps" in sentence
        assert sentence.endswith("set train.warmup_steps=4 for a fifth of them")


@pytest.mark.parametrize(
    ("progress", "minutes"),
    [
        (Progress(step=1000, seconds=790, prepared=120), 82),  # 2 minutes, plus 8 times 10
        (Progress(step=1, seconds=790, prepared=730), 13),  # preparation took nearly all of it
        (Progress(step=8000, seconds=720), None),
        (Progress(step=1000, seconds=600), None),  # ended by patience
        (Progress(step=0, seconds=720), None),
    ],
)
def test_what_to_do_where_the_clock_was_too_short(progress: Progress, minutes: int | None) -> None:
    """The minutes for all planned steps are extrapolated from the steps taken."""
    assert progress.minutes_needed(find_recipe("numbers")) == minutes
    assert progress.minutes_needed(find_recipe("multi30k-en-de")) is None


def test_nohup_is_obeyed() -> None:
    """If SIGHUP is ignored, it stays ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interrupt = Interrupt()
        with handling_ends(interrupt.press):
            signal.raise_signal(signal.SIGHUP)
        assert not interrupt.pressed
    finally:
        signal.signal(signal.SIGHUP, before)


def test_second_ctrl_c_is_not_held() -> None:
    """A second Ctrl-C raises KeyboardInterrupt at once."""
    with handling_ends(Interrupt().press):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
