"""What a run shows and records: the display, metrics.jsonl, trackers and the model card."""

import json
import math
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text
from torch import nn

from dragoman.errors import DragomanError, InputError
from dragoman.files.writing import write_durably
from dragoman.folder.format import CARD
from dragoman.train.config import TrainConfig
from dragoman.train.job import CardPart, Say, Validation
from dragoman.train.log import read_log
from dragoman.train.picture import draw_run, side_by_side
from dragoman.train.progress import Progress
from dragoman.train.recipe import RunRecipe
from dragoman.train.runfolder import GONE, RunFolder, deciding
from dragoman.train.step import Skipped, StepResult
from dragoman.train.trackers import TensorBoard, Tracker
from dragoman.version import __version__
from dragoman.wording import clock, counted

PLAIN_SECONDS = 15.0  # between lines without a terminal


class Speed:
    """Tokens per second since the last reading."""

    def __init__(self) -> None:
        self._seconds: float | None = None
        self._tokens = 0
        self._rate: float | None = None

    def read(self, progress: Progress, *, least_seconds: float = 0.0) -> float | None:
        """Return the rate, or None at the first reading.

        Readings within `least_seconds` of the last one repeat its rate.
        """
        if self._seconds is None:
            self._seconds, self._tokens = progress.seconds, progress.tokens
        elapsed = progress.seconds - self._seconds
        if elapsed > least_seconds:
            self._rate = (progress.tokens - self._tokens) / elapsed
            self._seconds, self._tokens = progress.seconds, progress.tokens
        return self._rate


class Reporter:
    """Receives the events of a run; the base class does nothing."""

    def stepped(self, progress: Progress, result: StepResult) -> None:
        """Called after each optimizer step."""

    def skipped(self, progress: Progress, skipped: Skipped) -> None:
        """Called after a step was skipped."""

    def validated(self, progress: Progress, validation: Validation) -> None:
        """Called after each validation."""

    def stopped(self, progress: Progress, reason: str) -> None:
        """Called when the run ends."""

    def close(self) -> None:
        """Called last, even if an error ended the run."""


class ConsoleReport(Reporter):
    """A live line on a terminal; without one, a plain line now and then."""

    def __init__(self, console: Console, config: TrainConfig) -> None:
        self._console = console
        self._config = config
        self._speed = Speed()
        self._last_line = time.monotonic()
        self._validation = "none yet"
        self._bar = Bar(
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:3.0f} %"),
            TextColumn("{task.fields[line]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=1.0, line="")

    def stepped(self, progress: Progress, result: StepResult) -> None:
        """Show step, loss, speed, learning rate, time left and the last validation."""
        if progress.step == 1:
            self._warn(progress.cut_short(self._config))
        if self._console.is_terminal:
            line = self._line(progress, result, self._speed.read(progress, least_seconds=1.0))
            self._bar.start()
            self._bar.update(self._task, completed=progress.done(self._config), line=line)
        elif progress.step == 1 or time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(self._line(progress, result, self._speed.read(progress)))

    def skipped(self, progress: Progress, skipped: Skipped) -> None:
        """Print why a step was skipped."""
        self._warn(f"a step after step {progress.step:,} was skipped: {skipped}")

    def validated(self, progress: Progress, validation: Validation) -> None:
        """Print the validation as a line that stays."""
        self._validation = str(validation)
        best = " (best so far)" if progress.best_step == progress.step else ""
        self._console.print(f"step {progress.step:,}: validation {self._validation}{best}")
        half = max(1, self._console.width // 2 - 4)
        table = [("answer", "reference"), *validation.examples] if validation.examples else []
        for columns in table:  # one line each, truncated to fit
            left, right = map(Text, columns)
            left.truncate(half, overflow="ellipsis", pad=True)
            right.truncate(half, overflow="ellipsis")
            self._console.print(Text.assemble("   ", left, "  ", right))
        if not math.isfinite(validation.loss):
            self._warn(
                f"the loss of this validation is {validation.loss}, so the model is useless; "
                "lower train.learning_rate, or lengthen train.warmup_steps"
            )
        for warning in validation.warnings:
            self._warn(warning)

    def stopped(self, progress: Progress, reason: str) -> None:
        """Remove the live line and print why the run ended."""
        self.close()
        self._console.print(
            f"Stopped at step {progress.step:,} after {clock(progress.seconds)}: {reason}."
        )
        if reason != "interrupted":
            self._warn(progress.cut_short(self._config, at_end=True))

    def close(self) -> None:
        """Restore the terminal in any case; calling it again does nothing."""
        if self._bar.live.is_started:
            self._bar.stop()

    def _warn(self, warning: str | None) -> None:
        if warning:
            self._console.print(f"Warning: {warning}.")

    def _line(self, progress: Progress, result: StepResult, speed: float | None) -> str:
        line = f"step {progress.step:,}: loss {result.loss:.3f}, "
        if speed:  # unknown after one step, as is the time left
            line += f"{speed:,.0f} tokens/s, "
        line += f"rate {result.learning_rate:.2e}, "
        done = progress.done(self._config)
        if speed and done > 0:
            line += f"{clock((progress.seconds - progress.prepared) * (1 / done - 1))} left, "
        return f"{line}validation: {self._validation}"


class MetricsFile(Reporter):
    """One JSON object per line, `{"step": ..., "loss": ...}` or `valid` or `skipped` for `loss`.

    Trackers get the same lines.
    """

    def __init__(
        self, path: Path, config: TrainConfig, progress: Progress, *trackers: Tracker | TensorBoard
    ) -> None:
        self._path, self._trackers = path, trackers
        self._every = config.log_every
        self._speed = Speed()
        path.parent.mkdir(parents=True, exist_ok=True)
        _cut_after(path, progress)

    def stepped(self, progress: Progress, result: StepResult) -> None:
        """Write every `log_every`-th step, and the first."""
        if progress.step == 1 or progress.step % self._every == 0:
            self._write(
                {
                    "step": progress.step,
                    "loss": result.loss,
                    "grad_norm": result.grad_norm,
                    "learning_rate": result.learning_rate,
                    "tokens": progress.tokens,
                    "tokens_per_second": self._speed.read(progress),
                    "seconds": progress.seconds,
                }
            )

    def skipped(self, progress: Progress, skipped: Skipped) -> None:
        """Write why a step was skipped, with all its examples, and the number skipped so far."""
        values = {"total": progress.skipped, **asdict(skipped)}
        self._write({"step": progress.step, "seconds": progress.seconds, "skipped": values})

    def validated(self, progress: Progress, validation: Validation) -> None:
        """Write the figures, warnings and examples of the validation."""
        found: dict[str, Any] = {"valid": validation.to_dict()}
        beside = {"warnings": validation.warnings, "examples": validation.examples}
        found |= {name: value for name, value in beside.items() if value}
        self._write({"step": progress.step, "seconds": progress.seconds, **found})

    def stopped(self, progress: Progress, reason: str) -> None:
        """Write why the run ended."""
        self._write({"step": progress.step, "seconds": progress.seconds, "stopped": reason})

    def close(self) -> None:
        """Let the trackers send what is left."""
        for tracker in self._trackers:
            tracker.close()

    def _write(self, values: Mapping[str, Any]) -> None:
        for tracker in self._trackers:
            tracker.send(values)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")
        except FileNotFoundError as error:
            raise DragomanError(GONE.format(self._path.parent.parent)) from error
        except OSError as error:
            raise DragomanError(
                f"Cannot write {self._path}: {error.strerror}; make room and run the same command "
                "to resume from the last checkpoint"
            ) from error


class RunPicture(Reporter):
    """Redraws `run.svg` (curves) and `samples.txt` (answers) from the log at each validation."""

    def __init__(self, folder: RunFolder, metric: str) -> None:
        self._folder, self._metric = folder, metric

    def validated(self, progress: Progress, validation: Validation) -> None:  # noqa: ARG002
        """Draw the run so far; failing to write the picture does not end the run."""
        with suppress(OSError, InputError):
            lines = read_log(self._folder.metrics)
            write_durably(self._folder.training / "run.svg", draw_run(lines, self._metric))
            if answers := side_by_side(lines):
                write_durably(self._folder.training / "samples.txt", answers)


def reporters_of(
    folder: RunFolder, recipe: RunRecipe, progress: Progress, say: Say
) -> list[Reporter]:
    """Return the reporters that write to the folder of a run, which has this progress."""
    name = recipe.train.tracker
    trackers = [Tracker(name, folder, deciding(recipe), say)] if name else []
    return [
        MetricsFile(folder.metrics, recipe.train, progress, *trackers, *TensorBoard.found(folder)),
        RunPicture(folder, recipe.metric),
    ]


def _cut_after(path: Path, progress: Progress) -> None:
    """Remove the lines that a resumed run will write again."""

    def stays(line: str) -> bool:
        try:
            values = json.loads(line)
            if "skipped" in values:
                return bool(values["skipped"]["total"] <= progress.skipped)
            if values["step"] < progress.step or "loss" in values:
                return bool(values["step"] <= progress.step)
            return "valid" in values and 0 < values["step"] == progress.validated_step
        except (ValueError, TypeError, LookupError, RecursionError):  # damaged lines can go
            return False

    if path.exists():
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")[:-1]  # without an incomplete last one
        write_durably(path, "".join(line + "\n" for line in lines if stays(line)))


# ---------------------------------------------------------------- the model card

UNFINISHED = "**Unfinished:** "
"""Start of the paragraph that is removed when the run ends."""


def model_card(
    recipe: RunRecipe,
    part: CardPart,
    model: nn.Module,
    progress: Progress,
    figures: Mapping[str, float],
) -> str:
    """Return the model card as Markdown: data, architecture, training, scores, versions and use."""
    data = [*part.data]
    data += [f"from: {recipe.data.source}"] if recipe.data.source else []
    data += [f"started from: `{recipe.start.model}`"] if recipe.start.model else []
    size = sum(p.numel() for p in model.parameters())
    blocks = [
        f"# {part.title}",
        recipe.description,
        f"{UNFINISHED}the best model so far of a run that has not ended, at "
        f"{_of_limits(recipe.train, progress)}.",
        "## Data",
        "\n".join(f"- {line}" for line in data),
        "## Model",
        f"{size:,} parameters: {part.architecture}.",
        "## Training",
        f"{counted(progress.step, 'step')}, {counted(progress.tokens, 'token')}, "
        f"{progress.seconds / 60:.1f} minutes, seed {recipe.train.seed}. "
        "The whole recipe: `training/recipe.json`.",
        "## Validation",
        part.judged,
        "\n".join(f"- {name}: {value:.4g}" for name, value in figures.items()),
        "## Use",
        f"    {part.use}",
        f"Made by dragoman {__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}.\n",
    ]
    return "\n\n".join(blocks)


def end_card(folder: Path) -> None:
    """Remove the note that the run is unfinished from the card in a folder."""
    card = folder / CARD
    if card.exists():  # the user may have removed it
        text = card.read_text(encoding="utf-8", errors="surrogateescape")  # users may edit it
        kept = (block for block in text.split("\n\n") if not block.startswith(UNFINISHED))
        write_durably(card, "\n\n".join(kept))


def _of_limits(config: TrainConfig, progress: Progress) -> str:
    steps = f"step {progress.step:,}"
    if config.max_steps is not None:
        steps += f" of {config.max_steps:,}"
    if config.max_minutes is None:
        return steps
    return f"{steps}, minute {progress.seconds / 60:.0f} of {config.max_minutes:g}"
