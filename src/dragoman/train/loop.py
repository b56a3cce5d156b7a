"""The training loop and its observers. It owns nothing: everything that it does is handed in."""

import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any, NoReturn

from dragoman.errors import DragomanError
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation, is_better
from dragoman.train.step import Skipped, StepResult
from dragoman.wording import counted

LONGEST_WARM_UP = 0.2
"""Share of the time of a run with `max_minutes` that its warm-up takes at most."""


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


class Observer:
    """Called during a run, to save, validate or report; the base class does nothing."""

    def stepped(self, progress: Progress, result: StepResult) -> None:
        """Called after each optimizer step."""

    def skipped(self, progress: Progress, skipped: Skipped) -> None:
        """A step was not taken."""

    def validated(self, progress: Progress, validation: Validation) -> None:
        """A validation was made."""

    def stopped(self, progress: Progress, reason: str) -> None:
        """The run ends."""


class Interrupt:
    """Remembers that the run is to stop; the loop asks between steps."""

    def __init__(self) -> None:
        self.pressed = False

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Stop after the step on SIGINT, SIGTERM or SIGHUP; a second SIGINT ends it at once.

        SIGHUP stays ignored where it is, as under nohup. Outside the main thread, where Python
        allows no handlers, nothing changes.
        """
        numbers = [signal.SIGINT, signal.SIGTERM]
        if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        previous: dict[signal.Signals, Any] = {}
        try:
            for number in numbers:
                previous[number] = signal.signal(number, self._handle)
        except ValueError:
            pass
        try:
            yield
        finally:
            for held, handler in previous.items():
                signal.signal(held, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.pressed and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.pressed = True


def fit(
    progress: Progress,
    take_step: Callable[[Progress], StepResult | Skipped],
    stop_reason: Callable[[Progress], str | None],
    observers: Sequence[Observer],
    *,
    started: float,
) -> str:
    """Take steps until there is a reason to stop, and return the reason.

    `started` is the moment (`time.monotonic`) from which this part of the run is timed; the time
    of earlier parts is in `progress`. A step that was skipped is none: it has no number, moves no
    schedule and is followed by no validation and no checkpoint.
    """
    before = progress.seconds
    if progress.step == 0:
        progress.prepared = before + time.monotonic() - started
    while (reason := stop_reason(progress)) is None:
        result = take_step(progress)
        progress.seconds = before + time.monotonic() - started
        if isinstance(result, Skipped) and result.expected:
            continue
        if isinstance(result, Skipped):
            progress.skipped += 1
            progress.skipped_in_row += 1
        else:
            progress.step += 1
            progress.tokens += result.num_tokens
            progress.skipped_in_row = 0
        for observer in observers:
            if isinstance(result, Skipped):
                observer.skipped(progress, result)
            else:
                observer.stepped(progress, result)
            progress.seconds = before + time.monotonic() - started
    for observer in observers:
        observer.stopped(progress, reason)
        progress.seconds = before + time.monotonic() - started
    return reason


def stop_rule(config: TrainConfig, interrupt: Interrupt) -> Callable[[Progress], str | None]:
    """Return the rule that names the limit that was reached, or None while there is none."""

    def reason(progress: Progress) -> str | None:
        if interrupt.pressed:
            return "interrupted"
        if config.max_steps is not None and progress.step >= config.max_steps:
            return counted(config.max_steps, "step")
        if config.max_minutes is not None and progress.seconds >= 60 * config.max_minutes:
            return counted(float(config.max_minutes), "minute")
        if config.patience is not None and progress.stale >= config.patience:
            return f"no better validation in {config.patience}"
        return None

    return reason


@dataclass(slots=True, kw_only=True)
class SkipLimit(Observer):
    """Ends the run after this many skipped steps in a row."""

    limit: int
    stop: Callable[[DragomanError], NoReturn]

    def skipped(self, progress: Progress, skipped: Skipped) -> None:
        """Say what was wrong with the last of them."""
        if progress.skipped_in_row < self.limit:
            return
        more = f", the last of {self.limit:,} steps in a row that were skipped"
        self.stop(
            DragomanError(
                f"{skipped}{more if self.limit > 1 else ''}; the weights are as they were before "
                "it: lower train.learning_rate, lengthen train.warmup_steps, or look at those "
                "examples"
            )
        )


@dataclass(slots=True, kw_only=True)
class Validator(Observer):
    """Validates, remembers the best in the progress, and hands the best model on."""

    every: int
    metric: str
    """What the best one is chosen by."""
    measure: Callable[[], Validation]
    keep: Callable[[Validation], None]
    """Called while the model is the best so far."""
    reporters: Sequence[Observer]
    """Called after each validation."""

    def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002 (an observer)
        """Validate after every `every`-th step."""
        if progress.step % self.every == 0:
            self.validate(progress)

    def stopped(self, progress: Progress, reason: str) -> None:
        """Validate once more, unless it was just done or somebody is waiting for the end."""
        if progress.step != progress.validated_step and reason != "interrupted":
            self.validate(progress)

    def validate(self, progress: Progress) -> None:
        """Validate the model as it is now."""
        progress.validated_step = progress.step
        validation = self.measure()
        found = validation.to_dict()
        if is_better(found, progress.best, self.metric):
            progress.best, progress.best_step, progress.stale = found, progress.step, 0
            if math.isfinite(validation.loss):  # else nobody could load it
                self.keep(validation)
        else:
            progress.stale += 1
        for reporter in self.reporters:
            reporter.validated(progress, validation)


@dataclass(slots=True, kw_only=True)
class Saver(Observer):
    """Saves a checkpoint at intervals of steps and at the end."""

    every: int
    save: Callable[[], None]
    last_step: int = 0

    def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002 (an observer)
        """Save after every `every`-th step."""
        if progress.step % self.every == 0:
            self._save(progress)

    def stopped(self, progress: Progress, reason: str) -> None:  # noqa: ARG002 (an observer)
        """Save where the run stops, so that it can be resumed."""
        if progress.step != self.last_step:
            self._save(progress)

    def _save(self, progress: Progress) -> None:
        self.last_step = progress.step
        self.save()


@dataclass(slots=True, kw_only=True)
class Fetcher(Observer):
    """Fetches, before each validation, the weights that it validates; it is the first observer."""

    every: int
    fetch: Callable[[], None]

    def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002 (an observer)
        """Fetch after every `every`-th step."""
        if progress.step % self.every == 0:
            self.fetch()

    def stopped(self, progress: Progress, reason: str) -> None:  # noqa: ARG002 (an observer)
        """Fetch once more: the last validation comes, and the average of checkpoints."""
        self.fetch()
