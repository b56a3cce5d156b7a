"""The trainer: takes the steps of a run, validates, saves and tracks its progress.

It receives a job, which defines what is learned from which data, and the processes of the run, one
or several; nothing here depends on how many.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from dragoman.errors import DragomanError, InputError
from dragoman.folder.adapters import save_adapter
from dragoman.folder.format import save_model
from dragoman.models.lora import merged
from dragoman.nn.cpu.products import autocast, training_products
from dragoman.nn.layers import Stack
from dragoman.plain import to_plain
from dragoman.train.checkpoint import (
    SavedState,
    average_weights,
    checkpoints,
    load_newest,
    moving_average,
    random_state,
    readable,
    replayed,
    save_checkpoint,
    tidy_checkpoints,
)
from dragoman.train.checks import Checks
from dragoman.train.diagnosis import examples_of, find_not_finite
from dragoman.train.job import Job, Validation, is_better
from dragoman.train.log import read_log
from dragoman.train.memory import rehearse, too_large, within_memory
from dragoman.train.optimizer import (
    learning_rate,
    load_optimizer_tensors,
    make_optimizer,
    update_averages,
)
from dragoman.train.processes import ALONE, Processes
from dragoman.train.progress import Interrupt, Progress, handling_ends
from dragoman.train.recipe import RunRecipe
from dragoman.train.report import ConsoleReport, Reporter, end_card, model_card, reporters_of
from dragoman.train.runfolder import RunFolder, adjusted_settings, former_size, resume_warnings
from dragoman.train.start import parameters_of, published_files
from dragoman.train.step import Skipped, Stepper, StepResult
from dragoman.wording import counted, format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """How a run ended."""

    folder: Path
    reason: str
    interrupted: bool
    """Whether the run is unfinished: the same command resumes it."""
    progress: Progress
    """The final progress; `progress.best` is the validation of the model in the folder."""


class Trainer:
    """A run in its folder: new, or resumed from the newest checkpoint there."""

    def __init__(
        self,
        job: Job[Any],
        recipe: RunRecipe,
        folder: RunFolder,
        console: Console,
        processes: Processes = ALONE,
    ) -> None:
        """Move the job's model to its device, and restore the saved state of the run.

        Raises InputError for a device that does not exist or a checkpoint that cannot be read.
        """
        self.job, self.recipe, self.config = job, recipe, recipe.train
        self.folder, self.console, self.processes = folder, console, processes
        self.progress = Progress()
        self.reporters: list[Reporter] = []
        self.interrupt = Interrupt()
        self.checks = Checks(recipe.train)
        self.too_large = partial(too_large, recipe)
        self.stepper = processes.together(self._make_stepper)
        processes.in_turn(self._resume)
        self.stepper = processes.distribute(
            self.stepper, job, self.config, self.place, self.too_large
        )
        self._saved_step = self.progress.step
        self._began = time.monotonic() - self.progress.seconds

    def _make_stepper(self) -> Stepper[Any]:
        """Move the model to its device and build the optimizer; print the choices."""
        config = self.config
        self.place = self.processes.place(config, self.job.model)
        device, precision = self.place.device, self.place.precision
        model = self.job.model.to("cpu" if self.place.sharded else device).train()
        if config.activation_checkpointing:
            for stack in model.modules():
                if isinstance(stack, Stack):
                    stack.checkpointing = True
        batches = self.job.batches
        self.console.print(
            f"{parameters_of(model, self.recipe.start.freeze)}; {device} in {precision}, "
            f"{counted(torch.get_num_threads(), 'thread')}; "
            f"{counted(batches.num_batches, 'batch', 'batches')} an epoch, "
            f"{batches.padding:.1%} padding.{self.place.describe(config.accumulate)}"
        )
        self.processes.begin_random(config.seed)
        return Stepper(
            model=model,
            optimizer=make_optimizer(model, config),
            loss=self.job.loss,
            precision=partial(autocast, precision, device),
            clip_norm=config.clip_norm,
            scaler=torch.amp.GradScaler(device.type) if precision == "fp16" else None,
        )

    def _resume(self) -> None:
        """Resume from the newest checkpoint, if any, and remove leftovers of a killed run."""
        newest = load_newest(self.folder.checkpoints, self.console.print)
        if self.processes.leads:
            tidy_checkpoints(self.folder.checkpoints, **self._kept)
        if newest is None:
            return
        state, tensors = newest
        with readable(checkpoints(self.folder.checkpoints)[-1]):
            _set_weights(self.job.model, tensors["weights"])
            load_optimizer_tensors(self.stepper.optimizer, self.job.model, tensors["optimizer"])
            adjusted = adjusted_settings(state.recipe, self.recipe)
            self.job.batches.load_state_dict(state.batches, former_size(adjusted))
            self.processes.set_random_states(tensors["random"])
            if self.stepper.scaler is not None and state.scaler:
                self.stepper.scaler.load_state_dict(state.scaler)
        self.progress = state.progress
        self.console.print(f"Resuming from step {self.progress.step:,}.")
        for warning in resume_warnings(state.machine, self.place.machine, adjusted):
            self.console.print(warning)
        exported = self.folder.exported  # such as an average, which no checkpoint contains
        if exported and is_better(exported, self.progress.best, self.recipe.metric):
            self.progress.best = exported

    # ------------------------------------------------------------ the run

    def run(self, started: float) -> TrainResult:
        """Train until the run ends or is interrupted.

        `started` is the moment (`time.monotonic`) from which this part of the run is timed; the
        time of earlier parts is in `progress`. Raises DragomanError if memory runs out, too many
        steps in a row are skipped, the time is over before the first step, the disk is full, or no
        validation has a finite loss.
        """
        largest = self.processes.together(self.job.batches.largest)
        rehearse(self.stepper, [batch.to(self.place.device) for batch in largest], self.recipe)
        if self.processes.leads:
            say = partial(self.console.print, markup=False)
            others = reporters_of(self.folder, self.recipe, self.progress, say)
            self.reporters = [ConsoleReport(self.console, self.config), *others]
            with suppress(InputError, OSError):  # a new run has no log
                self.checks.recall(read_log(self.folder.metrics))
        products = training_products(self.place.precision, self.place.device)
        self._began = started - self.progress.seconds
        with handling_ends(self.interrupt.press), products, ExitStack() as stack:
            for reporter in reversed(self.reporters):  # the display is closed first
                stack.callback(reporter.close)
            if self.recipe.start.model is not None and self.progress.step == 0:
                self.validate()  # the run may never beat its starting point
            reason = self._take_steps()
            if self.progress.step == 0 and reason != "interrupted":
                took = format_time(self.progress.prepared)
                raise DragomanError(
                    f"{self.folder.path}: train.max_minutes = {self.config.max_minutes} was over "
                    f"before the first step, which took {took} to prepare; set more."
                )
            self._stop(reason)
            pressed = self.processes.gather(self.interrupt.pressed, patient=True)
            interrupted = reason == "interrupted" or any(pressed)
            if self.processes.leads and not interrupted:
                self._average()
                self._check_kept()
                end_card(self.folder.path)
                self.folder.mark_finished(reason, self.progress)
        return TrainResult(
            folder=self.folder.path, reason=reason, interrupted=interrupted, progress=self.progress
        )

    def _take_steps(self) -> str:
        """Take steps until there is a reason to stop, and return the reason.

        A skipped step does not count: it has no number, does not advance the schedule, and triggers
        neither validation nor checkpoint.
        """
        while (reason := self._stop_reason()) is None:
            result = self.take_step()
            self._read_clock()
            if isinstance(result, Skipped):
                self._count_skipped(result)
                continue
            self.progress.step += 1
            self.progress.tokens += result.num_tokens
            self.progress.skipped_in_row = 0
            self.checks.stepped(result.loss, result.grad_norm)
            for reporter in self.reporters:
                reporter.stepped(self.progress, result)
            if self.progress.step % self.config.validate_every == 0:
                self.validate()
            if self.progress.step % self.config.save_every == 0:
                self.save()
        return reason

    def _stop(self, reason: str) -> None:
        """Validate the last step, unless a user is waiting for the end, and save it."""
        for reporter in self.reporters:
            reporter.stopped(self.progress, reason)
        if self.progress.step != self.progress.validated_step and reason != "interrupted":
            self.validate()
        if self.progress.step != self._saved_step:
            self.save()

    def _read_clock(self) -> None:
        """Update the time since the run began, including earlier parts."""
        self.progress.seconds = time.monotonic() - self._began

    def _stop_reason(self) -> str | None:
        """Return why to stop, or None: an interrupt of any process, or a limit."""
        self._read_clock()
        if self.progress.step == 0:
            self.progress.prepared = self.progress.seconds
        pressed = self.interrupt.pressed
        self.progress, interrupted = self.processes.agree(self.progress, interrupted=pressed)
        return "interrupted" if interrupted else self.progress.limit(self.config)

    def take_step(self) -> StepResult | Skipped:
        """Draw the batches of one step and train on them."""
        config, progress = self.config, self.progress
        drawn = self.processes.draw(self.job.batches, config.accumulate)
        batches = [batch.to(self.place.device) for batch in drawn]
        step, done = progress.next_step(config), progress.done(config)
        rate = learning_rate(config, step, done, self.job.config.model.d_model)
        before = random_state()
        with within_memory(lambda: self.too_large(batches)):
            result = self.stepper(batches, rate)
        if isinstance(result, StepResult) and config.ema is not None:
            update_averages(self.stepper.optimizer, config.ema, progress.step + 1)
        if isinstance(result, Skipped) and not result.expected:
            with replayed(before):
                return self._diagnose(result, batches)
        return result

    def _diagnose(self, skipped: Skipped, batches: Sequence[Any]) -> Skipped:
        """Run the batches of all processes again one by one, and report the one at fault."""
        find = partial(find_not_finite, self.job, batches, self.stepper.precision)
        fault = None
        if not self.place.sharded:  # modules of a sharded model cannot be hooked
            fault = self.processes.together(find, lambda: self.too_large(batches))
        told = self.processes.gather((fault, examples_of(batches)))
        every = [number for _, examples in told for number in examples]
        examples, where = next((fault for fault, _ in told if fault), (every, ""))
        return replace(skipped, examples=tuple(examples), where=where)

    def _count_skipped(self, skipped: Skipped) -> None:
        """Report a skipped step; raises DragomanError after too many in a row."""
        if skipped.expected:
            return
        self.progress.skipped += 1
        self.progress.skipped_in_row += 1
        for reporter in self.reporters:
            reporter.skipped(self.progress, skipped)
        limit = self.config.max_skipped
        if self.progress.skipped_in_row >= limit:
            last = f", the last of {limit:,} steps in a row that were skipped" if limit > 1 else ""
            self.processes.stop(
                DragomanError(
                    f"{skipped}{last}; the weights are as they were before it: lower "
                    "train.learning_rate, lengthen train.warmup_steps, or look at those examples"
                )
            )

    # ------------------------------------------------------------ validating and saving

    def validate(self) -> None:
        """Validate the current model, and keep the best one so far in the folder."""
        weights = self.stepper.weights()
        if not self.processes.leads:
            return
        if self.place.sharded:
            _set_weights(self.job.model, weights)
        self.progress.validated_step = self.progress.step
        validation = self.measure()
        found = validation.to_dict()
        if is_better(found, self.progress.best, self.recipe.metric):
            self.progress.best, self.progress.best_step = found, self.progress.step
            self.progress.stale = 0
            if math.isfinite(validation.loss):  # otherwise it could not be loaded
                self.export(validation)
        else:
            self.progress.stale += 1
        validation = self.checks.judge(self.progress, validation, self.stepper.gradient_sizes())
        for reporter in self.reporters:
            reporter.validated(self.progress, validation)

    def measure(self) -> Validation:
        """Validate the job's model."""
        model = self.job.model.to(self.place.device)
        with within_memory(lambda: self.too_large([])), merged(model), self.stepper.precision():
            validation = self.job.measure()
        if self.place.sharded:
            model.to("cpu")
        return validation

    def export(self, validation: Validation) -> None:
        """Write the model folder with the weights of the job's model."""
        job, start = self.job, self.recipe.start
        published, files = published_files(self.folder)
        with merged(job.model):
            card = model_card(
                self.recipe, job.card(validation), job.model, self.progress, validation.to_dict()
            )
            said = replace(job.config, task=self.recipe.own_task, published=published)
            config = save_model(
                self.folder.path,
                job.model.state_dict(),
                replace(said, alignment=validation.alignment),
                tokenizers=files or job.tokenizers,
                card=card,
            )
        if start.model is not None and start.lora.rank:
            save_adapter(self.folder.path, job.model, config, start.lora, Path(start.model))

    def save(self) -> None:
        """Write a checkpoint: everything that resuming needs."""
        self._saved_step = self.progress.step
        self._read_clock()
        scaler = self.stepper.scaler
        state = SavedState(
            progress=self.progress,
            batches=self.job.batches.state_dict(),
            recipe=to_plain(self.recipe),
            machine=self.place.machine,
            scaler=scaler.state_dict() if scaler else {},
        )
        weights, moments = self.stepper.weights(), self.stepper.moments()
        random = self.processes.random_states()
        if self.processes.leads:
            save_checkpoint(
                self.folder.checkpoints,
                state,
                {"weights": weights, "optimizer": moments, "random": random},
                **self._kept,
            )

    @property
    def _kept(self) -> dict[str, int]:
        return {"keep": self.config.average_last, "every": self.config.save_every}

    def _average(self) -> None:
        """Export an average of weights if it is the better model."""
        last = checkpoints(self.folder.checkpoints)[-self.config.average_last :]
        averages: dict[str, Callable[[], Mapping[str, Tensor]]] = {}
        if len(last) > 1:
            averages[f"average of the last {len(last)} checkpoints"] = lambda: average_weights(last)
        if self.config.ema is not None:
            averages["moving average of the weights"] = lambda: moving_average(last[-1])
        best = f"step {self.progress.best_step:,}"
        for name, weights in averages.items():
            _set_weights(self.job.model, weights())
            averaged = self.measure()
            better = is_better(averaged.to_dict(), self.progress.best, self.recipe.metric)
            self.console.print(
                f"The {name}: {averaged}; "
                + ("it is the model." if better else f"{best} is better.")
            )
            if better:
                best = f"the {name}"
                self.progress.best = averaged.to_dict()
                self.export(averaged)

    def _check_kept(self) -> None:
        """Raise DragomanError if no model was kept, for want of a finite validation loss."""
        if not math.isfinite((self.progress.best or {}).get("loss", 0.0)):
            raise DragomanError(
                f"{self.folder.path} has no model: no validation of the run had a finite loss; "
                "lower train.learning_rate or lengthen train.warmup_steps, and use another --out"
            )


@torch.no_grad()
def _set_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
