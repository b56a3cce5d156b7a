"""What happens every so many steps beside learning: validating and saving."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.train.loop import Progress
from dragoman.train.report import Reporter
from dragoman.train.step import StepResult
from dragoman.train.validate import Validation, is_better


@dataclass(slots=True, kw_only=True)
class Validator:
    """Validates, remembers the best in the progress, and hands the best model on."""

    every: int
    """Number of steps between validations."""
    metric: str
    """What the best one is chosen by."""
    measure: Callable[[], Validation]
    """Validates the model as it is now."""
    keep: Callable[[Validation], None]
    """Keeps the model as it is now: it is the best so far."""
    reporters: Sequence[Reporter]
    """Called after each validation."""

    def begin(self, progress: Progress) -> None:
        """Validate what a run starts from: a model that it may not come to surpass."""
        self._validate(progress)

    def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002 (an observer)
        """Validate after every `every`-th step."""
        if progress.step % self.every == 0:
            self._validate(progress)

    def stopped(self, progress: Progress, reason: str) -> None:
        """Validate once more, unless it was just done or somebody is waiting for the end."""
        if progress.step != progress.validated_step and reason != "interrupted":
            self._validate(progress)

    def _validate(self, progress: Progress) -> None:
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
class Saver:
    """Saves a checkpoint every so many steps and at the end."""

    every: int
    """Number of steps between checkpoints."""
    save: Callable[[], None]
    """Saves the run as it is now."""
    last_step: int = 0
    """The step of the last checkpoint."""

    def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002 (an observer)
        """Save after every `every`-th step."""
        if progress.step % self.every == 0:
            self._save(progress)

    def stopped(self, progress: Progress, reason: str) -> None:  # noqa: ARG002 (an observer)
        """Save where the run stops, so that it can go on from there."""
        if progress.step != self.last_step:
            self._save(progress)

    def _save(self, progress: Progress) -> None:
        self.last_step = progress.step
        self.save()
