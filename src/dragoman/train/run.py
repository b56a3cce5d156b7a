"""A training run around any job: optimizer, loop, checkpoints, and the model folder at the end."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch
from rich.console import Console
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.folder.adapters import save_adapter
from dragoman.folder.format import save_model
from dragoman.models.lora import merged
from dragoman.nn.cpu.products import autocast, training_products
from dragoman.nn.layers import Stack
from dragoman.plain import to_plain
from dragoman.train.checkpoint import (
    SavedState,
    Tensors,
    average_weights,
    checkpoints,
    load_newest,
    moving_average,
    random_state,
    readable,
    save_checkpoint,
    tidy_checkpoints,
)
from dragoman.train.device import choose_device, choose_precision, deterministic, machine_of
from dragoman.train.diagnosis import Fault, explained, fault_of, find_not_finite, replayed
from dragoman.train.job import Check, Job, Say, Validation, is_better, unchecked
from dragoman.train.loop import (
    Fetcher,
    Interrupt,
    Observer,
    Progress,
    Saver,
    SkipLimit,
    Validator,
    fit,
)
from dragoman.train.memory import rehearse, too_large
from dragoman.train.optimizer import (
    learning_rate,
    load_optimizer_tensors,
    make_optimizer,
    optimizer_tensors,
    update_averages,
)
from dragoman.train.parallel import ALONE, World, join_world
from dragoman.train.recipe import RunRecipe
from dragoman.train.report import ConsoleReport, MetricsFile, end_card, model_card, tensorboard
from dragoman.train.runfolder import RunFolder, adjusted_settings, former_size, resume_warnings
from dragoman.train.shard import chooses_shards, whole_tensors
from dragoman.train.start import check_start, copy_weights, keep_start, published_files
from dragoman.train.step import OUT_OF_MEMORY, Skipped, Stepper, StepResult, within_memory
from dragoman.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """How a run ended."""

    folder: Path
    reason: str
    interrupted: bool
    """Whether it is unfinished: the same command resumes it."""
    progress: Progress
    """Where it stood; `progress.best` is the validation of the model in the folder."""


@within_memory(lambda: OUT_OF_MEMORY)
def run_recipe(
    recipe: RunRecipe,
    assemble: Callable[[Any, RunFolder, Say, Check], Job[Any]],
    *,
    console: Console,
    estimate: Callable[[], Check] = lambda: unchecked,
) -> TrainResult:
    """Run a recipe to its end, or resume the unfinished run in its folder.

    `estimate` is called once the run can begin, before a text is read. `assemble` then makes the
    job, and what `estimate` returned may reject its model and batches before anything large is
    made. A run limited by steps that is killed at any moment, and gone on with, ends with the bits
    of one that was not; under `max_minutes` a falling rate and its warm-up follow the clock.
    Raises InputError for whatever is wrong with the recipe, its data or its folder, DragomanError
    for losses that are not finite, a full disk and a lack of memory; the checkpoints written before
    stay whole.
    """
    started = time.monotonic()
    world = join_world()
    if not world.leads:
        console = Console(quiet=True)

    def begin() -> tuple[Job[Any], RunFolder]:
        recipe.data.check()  # before there is a folder
        folder, source = RunFolder.of(recipe), None
        check_start(recipe, folder.start)
        if folder.start is not None and not checkpoints(folder.checkpoints):
            source = folder.start.load()  # finds damage before the texts are read
        if world.leads:
            stack.enter_context(folder.open(recipe))
        say = partial(console.print, markup=False, emoji=False)  # lines of corpora are data
        job = assemble(recipe, folder, say, estimate() if world.leads else unchecked)
        if folder.start is not None and source is not None:
            theirs = folder.start.config
            console.print(copy_weights(source, theirs, job.model, job.config.model, recipe))
            keep_start(folder.training, folder.start, source)
        return job, folder

    with ExitStack() as stack:
        stack.enter_context(deterministic(on=recipe.train.deterministic))
        job, folder = world.in_turn(begin)
        return run_job(job, recipe, folder, console=console, started=started, world=world)


def run_job(
    job: Job[Any],
    recipe: RunRecipe,
    folder: RunFolder,
    *,
    console: Console,
    started: float,
    world: World = ALONE,
) -> TrainResult:
    """Run a job, as `recipe.train` says, in an open folder; `started` is when the clock began."""
    config = recipe.train
    parts = world.together(lambda: Parts.around(job, recipe, folder, console, world))
    progress = world.in_turn(lambda: parts.resume(console))
    learner = world.stepper(parts.stepper, job, config, parts.too_large, sharded=parts.sharded)
    parts = replace(parts, stepper=learner, optimizer=learner.optimizer)
    parts.rehearse()
    display = ConsoleReport(console, config)
    reporters: list[Observer] = [display]
    if world.leads:
        reporters.append(MetricsFile(folder.metrics, config, progress))
        reporters += tensorboard(folder.training / "tensorboard", config)
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
    fetcher = Fetcher(every=config.validate_every, fetch=parts.fetch)
    skips = SkipLimit(limit=config.max_skipped, stop=world.stop)
    interrupt = Interrupt()
    products = training_products(parts.machine["precision"], parts.device)
    with interrupt.listen(), closing(display), products:
        if world.leads and recipe.start.model is not None and progress.step == 0:
            validator.validate(progress)  # the run may not come to surpass what it starts from
        reason = fit(
            progress,
            parts.take_step,
            world.stop_rule(config, interrupt),
            [fetcher, *reporters, validator, saver, skips]
            if world.leads
            else [fetcher, saver, skips],
            started=started,
        )
        interrupted = reason == "interrupted" or any(world.gather(interrupt.pressed, patient=True))
        if world.leads and not interrupted:
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
    world: World = ALONE
    sharded: bool = False
    """Whether the stepper learns with a model of its own, in shares; that of the job is whole."""

    @classmethod
    def around(
        cls,
        job: Job[Any],
        recipe: RunRecipe,
        folder: RunFolder,
        console: Console,
        world: World = ALONE,
    ) -> "Parts":
        """Bring the job's model to its device and build the optimizer; say what was decided."""
        config = recipe.train
        device = world.device(choose_device(config.device))
        precision = choose_precision(config.precision, device)
        sharded = world.size > 1 and chooses_shards(config, job.model, device, precision)
        model = job.model.to("cpu" if sharded else device).train()
        if config.activation_checkpointing:
            for stack in model.modules():
                if isinstance(stack, Stack):
                    stack.checkpointing = True
        optimizer = make_optimizer(model, config)
        told = world.describe(config.accumulate, device, sharded=sharded)
        console.print(
            f"{_parameters(model)}; {device} in {precision}, "
            f"{counted(torch.get_num_threads(), 'thread')}; "
            f"{counted(job.batches.num_batches, 'batch', 'batches')} an epoch, "
            f"{job.batches.padding:.1%} padding.{told}"
        )
        world.begin_random(config.seed)
        stepper = Stepper(
            model=model,
            optimizer=optimizer,
            loss=job.loss,
            precision=partial(autocast, precision, device),
            clip_norm=config.clip_norm,
            scaler=torch.amp.GradScaler(device.type) if precision == "fp16" else None,
        )
        return cls(
            recipe=recipe,
            folder=folder,
            job=job,
            device=device,
            optimizer=optimizer,
            stepper=stepper,
            machine=machine_of(device, precision, world.size, sharded=sharded),
            world=world,
            sharded=sharded,
        )

    def rehearse(self) -> None:
        """Take and undo steps with the largest batches."""
        largest = self.world.together(self.job.batches.largest)
        rehearse(self.stepper, [batch.to(self.device) for batch in largest], self.recipe)

    def take_step(self, progress: Progress) -> StepResult | Skipped:
        """Draw the batches of one step and learn from them."""
        config = self.recipe.train
        draw = partial(self.world.draw, self.job.batches, config.accumulate)
        group = [batch.to(self.device) for batch in self.world.together(draw)]
        step, done = progress.next_step(config), progress.done(config)
        rate = learning_rate(config, step, done, self.job.config.model.d_model)
        before = random_state()
        with within_memory(lambda: self.too_large(group)):
            result = self.stepper(group, rate)
        if isinstance(result, StepResult) and config.ema is not None:
            update_averages(self.stepper.optimizer, config.ema, progress.step + 1)
        if isinstance(result, Skipped) and not result.expected:
            with replayed(before):
                return self.diagnose(result, group)
        return result

    def diagnose(self, skipped: Skipped, batches: Sequence[Any]) -> Skipped:
        """Run the batches of all ranks again, each by itself, and say which is at fault."""
        find = partial(find_not_finite, self.job, batches, self.stepper.precision)
        found = None
        if not self.sharded:  # the modules of shares cannot be watched by themselves
            found = self.world.together(find, lambda: self.too_large(batches))
        told = self.world.gather(fault_of(found, batches))
        return explained(skipped, msgspec.convert(told, list[Fault]))

    def measure(self) -> Validation:
        """Validate the model as it is now."""
        self.job.model.to(self.device)
        model = self.job.model
        with within_memory(lambda: self.too_large([])), merged(model), self.stepper.precision():
            validation = self.job.measure()
        if self.sharded:
            self.job.model.to("cpu")
        return validation

    def fetch(self) -> None:
        """Put the weights into the job's model, on the process that validates."""
        if self.sharded:
            learned = self.stepper.model.named_parameters()
            weights = whole_tensors(dict(learned), keep=self.world.leads)
            if self.world.leads:
                _set_weights(self.job.model, weights)

    def export(self, validation: Validation, progress: Progress) -> None:
        """Write the model folder from the weights as they are now."""
        job = self.job
        figures, start = validation.to_dict(), self.recipe.start
        published, files = published_files(self.folder)
        with merged(job.model):
            config = save_model(
                self.folder.path,
                job.model.state_dict(),
                replace(job.config, task=self.recipe.own_task, published=published),
                tokenizers=files or job.tokenizers,
                card=model_card(self.recipe, job.card(validation), job.model, progress, figures),
            )
        if start.model is not None and start.lora.rank:
            save_adapter(self.folder.path, job.model, config, start.lora, Path(start.model))

    def save(self, progress: Progress) -> None:
        """Write a checkpoint: everything that resuming needs."""
        model = self.stepper.model
        state = SavedState(
            progress=progress,
            batches=self.job.batches.state_dict(),
            recipe=to_plain(self.recipe),
            machine=self.machine,
            scaler=self.stepper.scaler.state_dict() if self.stepper.scaler else {},
        )
        weights: Mapping[str, Tensor] = dict(model.named_parameters())
        moments = optimizer_tensors(self.stepper.optimizer, model)
        if self.sharded:
            weights = whole_tensors(weights, keep=self.world.leads)
            moments = whole_tensors(moments, keep=self.world.leads)
        random = self.world.random_states()
        tensors: Tensors = {"weights": weights, "optimizer": moments, "random": random}
        if self.world.leads:
            save_checkpoint(self.folder.checkpoints, state, tensors, **self._tidying)

    def resume(self, console: Console) -> Progress:
        """Resume from the newest checkpoint, if there is one; tidy where the run was killed."""
        newest = load_newest(self.folder.checkpoints, console.print)
        if self.world.leads:
            tidy_checkpoints(self.folder.checkpoints, **self._tidying)
        if newest is None:
            return Progress()
        state, tensors = newest
        progress = state.progress
        with readable(checkpoints(self.folder.checkpoints)[-1]):
            _set_weights(self.job.model, tensors["weights"])
            load_optimizer_tensors(self.optimizer, self.job.model, tensors["optimizer"])
            adjusted = adjusted_settings(state.recipe, self.recipe)
            self.job.batches.load_state_dict(state.batches, former_size(adjusted))
            self.world.set_random_states(tensors["random"])
            if self.stepper.scaler is not None and state.scaler:
                self.stepper.scaler.load_state_dict(state.scaler)
        console.print(f"Resuming from step {progress.step:,}.")
        for warning in resume_warnings(state.machine, self.machine, adjusted):
            console.print(warning)
        exported = self.folder.exported  # an average, say, which no checkpoint knows of
        if exported and is_better(exported, progress.best, self.recipe.metric):
            progress.best = exported
        return progress

    def finish(self, progress: Progress, console: Console) -> None:
        """Put an average of weights into the folder where it is the better model.

        The card then no longer says that the run is unfinished.
        """
        train = self.recipe.train
        last = checkpoints(self.folder.checkpoints)[-train.average_last :]
        averages: dict[str, Callable[[], Mapping[str, Tensor]]] = {}
        if len(last) > 1:
            averages[f"average of the last {len(last)} checkpoints"] = lambda: average_weights(last)
        if train.ema is not None:
            averages["moving average of the weights"] = lambda: moving_average(last[-1])
        best = f"step {progress.best_step:,}"
        for name, weights in averages.items():
            _set_weights(self.job.model, weights())
            averaged = self.measure()
            better = is_better(averaged.to_dict(), progress.best, self.recipe.metric)
            console.print(
                f"The {name}: {averaged}; "
                + ("it is the model." if better else f"{best} is better.")
            )
            if better:
                best = f"the {name}"
                progress.best = averaged.to_dict()
                self.export(averaged, progress)
        end_card(self.folder.path)

    @property
    def _tidying(self) -> dict[str, int]:
        """Which checkpoints are kept."""
        return {"keep": self.recipe.train.average_last, "every": self.recipe.train.save_every}

    def too_large(self, batches: Sequence[Batch]) -> str:
        """What to do where a step with these batches, or a validation, has no memory."""
        return too_large(self.recipe, batches)


def _parameters(model: nn.Module) -> str:
    total = sum(p.numel() for p in model.parameters())
    learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = f", {total - learning:,} of them frozen" if learning < total else ""
    return f"{total:,} parameters{frozen}"


@torch.no_grad()
def _set_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
