"""A training run around any job: optimizer, loop, checkpoints, and the model folder at the end."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.errors import DragomanError, is_out_of_memory
from dragoman.models.folder import load_model, save_model
from dragoman.nn import Decoder, Encoder
from dragoman.nn.cpu.products import autocast
from dragoman.plain import to_plain
from dragoman.train.checkpoint import (
    SavedState,
    Tensors,
    average_weights,
    checkpoints,
    load_checkpoint,
    random_state,
    readable,
    save_checkpoint,
    set_random_state,
    tidy_checkpoints,
)
from dragoman.train.device import choose_device, choose_precision, deterministic, machine_of
from dragoman.train.job import Check, Job, Say, Validation, is_better, unchecked
from dragoman.train.loop import Interrupt, Observer, Progress, Saver, Validator, fit, stop_rule
from dragoman.train.optimizer import (
    learning_rate,
    load_optimizer_tensors,
    make_optimizer,
    optimizer_tensors,
)
from dragoman.train.recipe import RunRecipe
from dragoman.train.report import ConsoleReport, MetricsFile, end_card, model_card, tensorboard
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import check_start, copy_weights
from dragoman.train.step import Stepper, StepResult
from dragoman.wording import counted

OUT_OF_MEMORY = (
    "out of memory: give a smaller model or smaller batches in a new run, or use a machine with "
    "more memory; the checkpoints written before stay whole"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """How a run ended."""

    folder: Path
    reason: str
    interrupted: bool
    """Whether it is unfinished: the same command goes on with it."""
    progress: Progress
    """Where it stood; `progress.best` is the validation of the model in the folder."""


@contextmanager
def _within_memory(sentence: Callable[[], str]) -> Iterator[None]:
    """Raise DragomanError with this sentence where there is no memory left."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise DragomanError(sentence()) from error


@_within_memory(lambda: OUT_OF_MEMORY)
def run_recipe(
    recipe: RunRecipe,
    assemble: Callable[[Any, RunFolder, Say, Check], Job[Any]],
    *,
    console: Console,
    estimate: Callable[[], Check] = lambda: unchecked,
) -> TrainResult:
    """Run a recipe to its end, or go on with the unfinished run in its folder.

    `estimate` is called once the run can begin, before a text is read. `assemble` then makes the
    job, and what `estimate` returned may reject its model and batches before anything large is
    made. A run limited by steps that is killed at any moment, and gone on with, ends with the bits
    of one that was not; under `max_minutes` the falling learning rate follows the clock.
    Raises InputError for whatever is wrong with the recipe, its data or its folder, DragomanError
    for a loss that is not finite, a full disk and a lack of memory; the checkpoints written before
    stay whole.
    """
    started = time.monotonic()
    recipe.data.check()  # before there is a folder
    check_start(recipe)
    start = None
    if recipe.start.model is not None and not checkpoints(RunFolder(Path(recipe.out)).checkpoints):
        start = load_model(Path(recipe.start.model))  # finds damage before the texts are read
    with (
        deterministic(on=recipe.train.deterministic),
        RunFolder.open(Path(recipe.out), recipe) as folder,
    ):
        job = assemble(recipe, folder, console.print, estimate())
        if start is not None:
            console.print(copy_weights(*start, job.model, job.config.model, recipe))
            start = None  # frees its memory
        return run_job(job, recipe, folder, console=console, started=started)


def run_job(
    job: Job[Any], recipe: RunRecipe, folder: RunFolder, *, console: Console, started: float
) -> TrainResult:
    """Run a job, as `recipe.train` says, in an open folder; `started` is when the clock began."""
    config = recipe.train
    parts = Parts.around(job, recipe, folder, console)
    progress = parts.resume(console)
    display = ConsoleReport(console, config)
    reporters: list[Observer] = [
        display,
        MetricsFile(folder.metrics, config, progress),
        *tensorboard(folder.training / "tensorboard", config),
    ]
    validator = Validator(
        every=config.validate_every,
        metric=recipe.metric,
        measure=parts.measure,
        keep=lambda validation: parts.export(validation, progress),
        reporters=reporters,
    )
    saver = Saver(
        every=config.save_every, save=lambda: parts.save(progress), last_step=progress.step
    )
    interrupt = Interrupt()
    with interrupt.listen(), closing(display):
        if recipe.start.model is not None and progress.step == 0:
            validator.validate(progress)  # the run may not come to surpass what it starts from
        reason = fit(
            progress,
            parts.take_step,
            stop_rule(config, interrupt),
            [*reporters, validator, saver],
            started=started,
        )
        interrupted = interrupt.pressed
        if not interrupted:
            parts.finish(progress, console)
            folder.mark_finished(reason, progress)
    return TrainResult(
        folder=folder.path, reason=reason, interrupted=interrupted, progress=progress
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of: the job on its device, with what learns from it and keeps it."""

    recipe: RunRecipe
    folder: RunFolder
    job: Job[Any]
    device: torch.device
    optimizer: torch.optim.Optimizer
    stepper: Stepper[Any]
    machine: dict[str, str]
    """What the bits depend on beside the recipe."""

    @classmethod
    def around(
        cls, job: Job[Any], recipe: RunRecipe, folder: RunFolder, console: Console
    ) -> "Parts":
        """Bring the job's model to its device and build the optimizer; say what was decided."""
        config = recipe.train
        device = choose_device(config.device)
        precision = choose_precision(config.precision, device)
        model = job.model.to(device).train()
        if config.activation_checkpointing:
            for stack in model.modules():
                if isinstance(stack, Encoder | Decoder):
                    stack.checkpointing = True
        optimizer = make_optimizer(model, config)
        console.print(
            f"{_parameters(model)}; {device} in {precision}, "
            f"{counted(torch.get_num_threads(), 'thread')}; "
            f"{counted(job.batches.num_batches, 'batch', 'batches')} an epoch, "
            f"{job.batches.padding:.1%} padding."
        )
        stepper = Stepper(
            model=model,
            optimizer=optimizer,
            loss=job.loss,
            precision=partial(autocast, precision, device),
            clip_norm=config.clip_norm,
        )
        return cls(
            recipe=recipe,
            folder=folder,
            job=job,
            device=device,
            optimizer=optimizer,
            stepper=stepper,
            machine=machine_of(device, precision),
        )

    def take_step(self, progress: Progress) -> StepResult:
        """Draw the batches of one step and learn from them."""
        config = self.recipe.train
        group = [next(self.job.batches).to(self.device) for _ in range(config.accumulate)]
        done = progress.done(config)
        rate = learning_rate(config, progress.step + 1, done, self.job.config.model.d_model)
        with _within_memory(lambda: self._too_large(group)):
            return self.stepper(group, rate)

    def measure(self) -> Validation:
        """Validate the model as it is now."""
        with _within_memory(lambda: self._too_large([])), self.stepper.precision():
            return self.job.measure()

    def export(self, validation: Validation, progress: Progress) -> None:
        """Write the model folder from the weights as they are now."""
        job = self.job
        figures = validation.to_dict()
        save_model(
            self.folder.path,
            job.model.state_dict(),
            replace(job.config, task=self.recipe.own_task),
            tokenizers=job.tokenizers,
            card=model_card(self.recipe, job.card(validation), job.model, progress, figures),
        )

    def save(self, progress: Progress) -> None:
        """Write a checkpoint: everything that resuming needs."""
        model = self.job.model
        state = SavedState(
            progress=progress,
            batches=self.job.batches.state_dict(),
            recipe=to_plain(self.recipe),
            machine=self.machine,
        )
        tensors: Tensors = {
            "weights": dict(model.named_parameters()),
            "optimizer": optimizer_tensors(self.optimizer, model),
            "random": random_state(),
        }
        save_checkpoint(self.folder.checkpoints, state, tensors, **self._tidying)

    def resume(self, console: Console) -> Progress:
        """Go on from the newest checkpoint, if there is one; tidy where the run was killed."""
        tidy_checkpoints(self.folder.checkpoints, **self._tidying)
        saved = checkpoints(self.folder.checkpoints)
        if not saved:
            return Progress()
        state, tensors = load_checkpoint(saved[-1])
        progress, before, now = state.progress, state.machine, self.machine
        with readable(saved[-1]):
            _set_weights(self.job.model, tensors["weights"])
            load_optimizer_tensors(self.optimizer, self.job.model, tensors["optimizer"])
            self.job.batches.load_state_dict(state.batches)
            set_random_state(tensors["random"])
        console.print(f"Going on from step {progress.step:,}.")
        changed = [f"{k} {v} (was {before[k]})" for k, v in now.items() if v != before.get(k, v)]
        if changed:
            console.print(
                f"Warning: this machine has {', '.join(changed)}, so the run will not end with the "
                "bits of one that never stopped."
            )
        exported = self.folder.exported  # an average, say, which no checkpoint knows of
        if exported and is_better(exported, progress.best, self.recipe.metric):
            progress.best = exported
        return progress

    def finish(self, progress: Progress, console: Console) -> None:
        """Put the average of the last checkpoints into the folder where it is the better model.

        The card then no longer says that the run is unfinished.
        """
        last = checkpoints(self.folder.checkpoints)[-self.recipe.train.average_last :]
        if len(last) > 1:
            _set_weights(self.job.model, average_weights(last))
            averaged = self.measure()
            better = is_better(averaged.to_dict(), progress.best, self.recipe.metric)
            console.print(
                f"The average of the last {len(last)} checkpoints: {averaged}; "
                + ("it is the model." if better else f"step {progress.best_step:,} is better.")
            )
            if better:
                progress.best = averaged.to_dict()
                self.export(averaged, progress)
        end_card(self.folder.path)

    @property
    def _tidying(self) -> dict[str, int]:
        """Which checkpoints are kept."""
        return {"keep": self.recipe.train.average_last, "every": self.recipe.train.save_every}

    def _too_large(self, batches: Sequence[Batch]) -> str:
        """What to do where a step with these batches, or a validation, has no memory."""
        limits = to_plain(self.recipe).get("batch", {})
        given = [f"batch.{k} ({limits[k]:,})" for k in ("max_tokens", "rows") if k in limits]
        advice = f"lower {' and '.join(given) or 'the size of batches'} in a new run"
        if not batches:
            return (
                f"out of memory during validation: {advice}; the checkpoints of this one are whole"
            )
        largest = max(batches, key=lambda batch: batch.num_tokens)
        size = (
            f"{counted(len(largest.indices), 'example')} and {counted(largest.num_tokens, 'token')}"
        )
        more = ""
        if not self.recipe.train.activation_checkpointing:
            more = (
                ", or add train.activation_checkpointing=true to the same command, which goes on "
                "from the last checkpoint with less memory, slower, and to the same end"
            )
        return (
            f"out of memory in a batch of {size}: {advice} (train.accumulate makes up for it){more}"
        )


def _parameters(model: nn.Module) -> str:
    total = sum(p.numel() for p in model.parameters())
    learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = f", {total - learning:,} of them frozen" if learning < total else ""
    return f"{total:,} parameters{frozen}"


@torch.no_grad()
def _set_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
