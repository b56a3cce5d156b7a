"""How far a run is, and how it is stopped: by the limits of its recipe, or by a signal."""

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
"""Share of the time of a run with `max_minutes` that its warm-up takes at most."""
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
    """Those of them before the first step: tokenization and the like; 0 in old checkpoints."""
    tokens: int = 0
    """Tokens seen, without padding."""
    best: dict[str, float] | None = None
    """What the best validation so far found."""
    best_step: int = 0
    validated_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    skipped: int = 0
    """Steps that were not taken, since their loss or gradient was not finite."""
    skipped_in_row: int = 0
    """Those of them since the last step that was taken."""

    def __post_init__(self) -> None:
        """Raise ValueError for values that no run has saved."""
        counts = [self.step, self.tokens, self.best_step, self.validated_step, self.stale]
        if (
            min(*counts, self.skipped, self.skipped_in_row) < 0
            or not 0.0 <= self.seconds < math.inf
            or not 0.0 <= self.prepared < math.inf
        ):
            raise ValueError(f"no run can be at {self}")

    def limit(self, config: TrainConfig) -> str | None:
        """Name the first limit of the run that is reached; None while there is none."""
        if config.max_steps is not None and self.step >= config.max_steps:
            return counted(config.max_steps, "step")
        if config.max_minutes is not None and self.seconds >= 60 * config.max_minutes:
            return counted(float(config.max_minutes), "minute")
        if config.patience is not None and self.stale >= config.patience:
            return f"no better validation in {config.patience}"
        return None

    def done(self, config: TrainConfig) -> float:
        """How much of the run is over: the nearest of its limits decides, 0 to 1."""
        by_steps = self.step / config.max_steps if config.max_steps else 0.0
        return min(1.0, max(by_steps, self.done_by_clock(config)))

    def done_by_clock(self, config: TrainConfig) -> float:
        """Return how much of the time for steps is over, 0 to 1; 0 without `max_minutes`."""
        if config.max_minutes is None:
            return 0.0
        available = max(1e-9, 60 * config.max_minutes - self.prepared)  # preparing may take it all
        return min(1.0, max(0.0, (self.seconds - self.prepared) / available))

    def next_step(self, config: TrainConfig) -> float:
        """Return where the next step is in the schedule: 1 at first, 2 after one step, and so on.

        For a rate that falls to 0 the clock counts too: the schedule is ahead of the steps where
        they would take more than `LONGEST_WARM_UP` of the time to warm up.
        """
        if config.max_minutes is None or not config.decays_to_zero:
            return self.step + 1
        risen = self.done_by_clock(config) / LONGEST_WARM_UP
        return max(self.step + 1, config.warmup_steps * risen)

    def cut_short(self, config: TrainConfig, *, at_end: bool = False) -> str | None:
        """Say that a run ends before its warm-up; with a clock only the end of the run tells."""
        if at_end != (config.max_minutes is not None):
            return None
        steps = round(self.next_step(config)) - 1 if at_end else config.max_steps
        if steps is None or steps > config.warmup_steps:
            return None
        if not (fifth := int(LONGEST_WARM_UP * steps)):
            return None  # a run that only shows that it runs
        return CUT_SHORT.format(config.warmup_steps, counted(steps, "step"), fifth)

    def minutes_needed(self, recipe: RunRecipe) -> int | None:
        """Return the `max_minutes` in which a run of this speed takes all planned steps.

        None unless the clock ended this one before.
        """
        planned, minutes = recipe.planned_steps, recipe.train.max_minutes
        if planned is None or minutes is None or not 0 < self.step < planned:
            return None
        if self.seconds < 60 * minutes:  # something else ended it
            return None
        training = max(0.0, 60 * minutes - self.prepared)  # the last validation came after it
        return math.ceil((self.prepared + training * planned / self.step) / 60)


class Interrupt:
    """Remembers that the run is to stop; the trainer asks between steps."""

    def __init__(self) -> None:
        self.pressed = False

    def press(self, number: int, _frame: FrameType | None) -> None:
        """Stop after the step on a signal; a second SIGINT ends it at once."""
        if self.pressed and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def handling_ends(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call `handle` on the signals that ask a process to end: SIGINT, SIGTERM and SIGHUP.

    SIGHUP stays ignored where it is, as under nohup. Outside the main thread, where Python
    allows no handlers, nothing changes.
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
