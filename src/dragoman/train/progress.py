"""The progress of a run, and how it ends: at a limit of its recipe, or on a signal."""

import math
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from dragoman.train.config import TrainConfig
from dragoman.train.recipe import RunRecipe
from dragoman.wording import counted

LONGEST_WARM_UP = 0.2
"""Maximum share of the time of a run with `max_minutes` that its warm-up takes."""
CUT_SHORT = (
    "the warm-up of train.warmup_steps = {:,} does not end in the {} of this run, so "
    "train.learning_rate is never reached; set train.warmup_steps={} for a fifth of them"
)


@dataclass(slots=True, kw_only=True)
class Progress:
    """The progress of a run: plain numbers, saved in every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    """Wall time spent, over all resumptions."""
    prepared: float = 0.0
    """The part of `seconds` before the first step, such as tokenization."""
    tokens: int = 0
    """Tokens seen, without padding."""
    best: dict[str, float] | None = None
    """The figures of the best validation so far."""
    best_step: int = 0
    validated_step: int = 0
    stale: int = 0
    """Number of validations since the best one."""
    skipped: int = 0
    """Number of steps skipped because their loss or gradient was not finite."""
    skipped_in_row: int = 0
    """Number of steps skipped since the last step that was taken."""

    def __post_init__(self) -> None:
        counts = [self.step, self.tokens, self.best_step, self.validated_step, self.stale]
        if (
            min(*counts, self.skipped, self.skipped_in_row) < 0
            or not 0.0 <= self.seconds < math.inf
            or not 0.0 <= self.prepared < math.inf
        ):
            raise ValueError(f"no run can be at {self}")

    def limit(self, config: TrainConfig) -> str | None:
        """Describe the first limit that the run has reached; None if it has reached none."""
        if config.max_steps is not None and self.step >= config.max_steps:
            return counted(config.max_steps, "step")
        if config.max_minutes is not None and self.seconds >= 60 * config.max_minutes:
            return counted(float(config.max_minutes), "minute")
        if config.patience is not None and self.stale >= config.patience:
            return f"no better validation in {config.patience}"
        return None

    def done(self, config: TrainConfig) -> float:
        """Return the completed fraction of the run, 0 to 1, by the limit that is nearest."""
        by_steps = self.step / config.max_steps if config.max_steps else 0.0
        return min(1.0, max(by_steps, self.done_by_clock(config)))

    def done_by_clock(self, config: TrainConfig) -> float:
        """Return the elapsed fraction of the time for steps, 0 to 1; 0 without `max_minutes`."""
        if config.max_minutes is None:
            return 0.0
        available = max(1e-9, 60 * config.max_minutes - self.prepared)  # preparing may take it all
        return min(1.0, max(0.0, (self.seconds - self.prepared) / available))

    def next_step(self, config: TrainConfig) -> float:
        """Return the position of the next step in the schedule: 1 at first, 2 after one step, etc.

        For a rate that falls to 0 the clock counts too: the schedule runs ahead of the steps if
        they would take more than `LONGEST_WARM_UP` of the time to warm up.
        """
        if config.max_minutes is None or not config.decays_to_zero:
            return self.step + 1
        risen = self.done_by_clock(config) / LONGEST_WARM_UP
        return max(self.step + 1, config.warmup_steps * risen)

    def cut_short(self, config: TrainConfig, *, at_end: bool = False) -> str | None:
        """Return a warning if the run ends before its warm-up; with a clock, only at its end."""
        if at_end != (config.max_minutes is not None):
            return None
        steps = round(self.next_step(config)) - 1 if at_end else config.max_steps
        if steps is None or steps > config.warmup_steps:
            return None
        if not (fifth := int(LONGEST_WARM_UP * steps)):
            return None  # too short for more than a smoke test
        return CUT_SHORT.format(config.warmup_steps, counted(steps, "step"), fifth)

    def minutes_needed(self, recipe: RunRecipe) -> int | None:
        """Return the `max_minutes` in which a run of this speed would take all planned steps.

        None unless the clock ended this run before them.
        """
        planned, minutes = recipe.planned_steps, recipe.train.max_minutes
        if planned is None or minutes is None or not 0 < self.step < planned:
            return None
        if self.seconds < 60 * minutes:  # not ended by the clock
            return None
        training = max(0.0, 60 * minutes - self.prepared)  # without the last validation
        return math.ceil((self.prepared + training * planned / self.step) / 60)


class Interrupt:
    """A request to stop the run, which the trainer checks between steps."""

    def __init__(self) -> None:
        self.pressed = False

    def press(self, number: int, _frame: FrameType | None) -> None:
        """Request a stop after the current step; a second SIGINT stops immediately."""
        if self.pressed and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def handling_ends(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call `handle` on the signals that ask a process to end: SIGINT, SIGTERM and SIGHUP.

    SIGHUP stays ignored if it already is, as under nohup. Outside the main thread, where Python
    allows no signal handlers, nothing changes.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous: dict[signal.Signals, Any] = {}
    try:
        for number in numbers:
            previous[number] = signal.signal(number, handle)
    except ValueError:
        pass
    try:
        yield
    finally:
        for held, handler in previous.items():
            signal.signal(held, handler)
