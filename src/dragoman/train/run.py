"""A training run, assembled from a recipe: the parts, the loop, and the model folder at the end."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from rich.console import Console
from torch import Tensor

from dragoman.data.batch import Batches
from dragoman.models import EncoderDecoder
from dragoman.models.folder import FolderConfig, save_model
from dragoman.nn.precision import autocast
from dragoman.train.card import model_card
from dragoman.train.checkpoint import (
    Checkpoint,
    average_weights,
    checkpoints,
    load_checkpoint,
    random_state,
    save_checkpoint,
    set_random_state,
)
from dragoman.train.device import choose_device, choose_precision
from dragoman.train.loop import Interrupt, Progress, fit, stop_rule
from dragoman.train.observers import Saver, Validator
from dragoman.train.optimizer import load_optimizer_tensors, make_optimizer, optimizer_tensors
from dragoman.train.recipe import Recipe
from dragoman.train.report import ConsoleReport, MetricsFile, Reporter, tensorboard
from dragoman.train.runfolder import RunFolder
from dragoman.train.schedule import learning_rate
from dragoman.train.step import Stepper, StepResult
from dragoman.train.texts import Texts, Tokenizers, read_texts
from dragoman.train.validate import Validation, is_better, validate


class Score(Protocol):
    """Translates and scores; handed in from the floor above, where text is translated."""

    def __call__(
        self,
        model: EncoderDecoder,
        tokenizers: Tokenizers,
        sources: list[str],
        references: list[str],
    ) -> Mapping[str, float]:
        """Return `bleu` and `chrf` of greedy translations."""

    @property
    def signature(self) -> str:
        """How they were computed, as sacreBLEU writes it; known after the first call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """How a run ended."""

    folder: Path
    """The model folder."""
    reason: str
    """Why it stopped."""
    interrupted: bool
    """Whether it is unfinished: the same command goes on with it."""
    progress: Progress
    """Where it stood; `progress.best` is the validation of the model in the folder."""


def train(recipe: Recipe, *, score: Score, console: Console) -> TrainResult:
    """Run a recipe to its end, or go on with the unfinished run in its folder.

    A run limited by steps that is killed at any moment, and gone on with, ends with the bits of one
    that was not; under `max_minutes` the falling learning rate follows the clock.
    Raises InputError for whatever is wrong with the recipe, its data or its folder, DragomanError
    for a loss that is not finite and for a full disk; the checkpoints written before stay whole.
    """
    started = time.monotonic()
    recipe.data.check()  # before there is a folder
    run_folder = RunFolder.open(Path(recipe.out), recipe)
    parts = _Parts.assemble(recipe, run_folder, score, console)
    progress = parts.resume(console)
    display = ConsoleReport(console, recipe.train)
    reporters: list[Reporter] = [
        display,
        MetricsFile(run_folder.metrics, recipe.train, progress),
        *tensorboard(run_folder.training / "tensorboard", recipe.train),
    ]
    validator = Validator(
        every=recipe.train.validate_every,
        metric=recipe.train.metric,
        measure=parts.measure,
        keep=lambda validation: parts.export(validation, progress),
        reporters=reporters,
    )
    saver = Saver(
        every=recipe.train.save_every, save=lambda: parts.save(progress), last_step=progress.step
    )
    interrupt = Interrupt()
    with interrupt.listen(), closing(display):
        reason = fit(
            progress,
            parts.take_step,
            stop_rule(recipe.train, interrupt),
            [*reporters, validator, saver],
            started=started,
        )
        interrupted = interrupt.pressed
        if not interrupted:
            parts.finish(progress, console)
            run_folder.mark_finished(reason, progress)
    return TrainResult(
        folder=run_folder.path, reason=reason, interrupted=interrupted, progress=progress
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What a run is made of."""

    recipe: Recipe
    folder: RunFolder
    config: FolderConfig
    texts: Texts
    device: torch.device
    model: EncoderDecoder
    optimizer: torch.optim.Optimizer
    batches: Batches
    stepper: Stepper
    score: Score

    @classmethod
    def assemble(
        cls, recipe: Recipe, folder: RunFolder, score: Score, console: Console
    ) -> "_Parts":
        """Read the texts and build everything else; say what was decided."""
        device = choose_device(recipe.train.device)
        precision = choose_precision(recipe.train.precision, device)
        texts = read_texts(recipe, folder.training, console.print)
        config = FolderConfig(
            model=replace(
                recipe.model,
                src_vocab_size=texts.tokenizers.src.vocab_size,
                tgt_vocab_size=texts.tokenizers.tgt.vocab_size,
            ),
            decoding=recipe.decoding,
            src_lang=recipe.data.src_lang,
            tgt_lang=recipe.data.tgt_lang,
        )
        torch.manual_seed(recipe.train.seed)
        model = EncoderDecoder(config.model).to(device)
        model.train()
        optimizer = make_optimizer(model, recipe.train)
        splits = (texts.tokenizers.src.splits(), texts.tokenizers.tgt.splits())
        batches = Batches(texts.training, recipe.batch, seed=recipe.train.seed, splits=splits)
        console.print(
            f"{sum(p.numel() for p in model.parameters()):,} parameters; {device} in {precision}, "
            f"{torch.get_num_threads()} threads; {batches.num_batches:,} batches an epoch, "
            f"{batches.padding:.1%} padding."
        )
        stepper = Stepper(
            model=model,
            optimizer=optimizer,
            precision=partial(autocast, precision, device),
            label_smoothing=recipe.train.label_smoothing,
            clip_norm=recipe.train.clip_norm,
        )
        return cls(
            recipe=recipe,
            folder=folder,
            config=config,
            texts=texts,
            device=device,
            model=model,
            optimizer=optimizer,
            batches=batches,
            stepper=stepper,
            score=score,
        )

    def take_step(self, progress: Progress) -> StepResult:
        """Draw the batches of one step and learn from them."""
        config = self.recipe.train
        group = [next(self.batches).to(self.device) for _ in range(config.accumulate)]
        done = progress.done(config)
        return self.stepper(
            group, learning_rate(config, progress.step + 1, done, self.config.model.d_model)
        )

    def measure(self) -> Validation:
        """Validate the model as it is now."""
        sources, references = self.texts.validation_lines(self.recipe.train.validate_limit)
        batches = self.texts.validation_batches(self.recipe.batch.max_tokens)
        with self.stepper.precision():
            return validate(
                self.model,
                [batch.to(self.device) for batch in batches],
                lambda: self.score(self.model, self.texts.tokenizers, sources, references),
            )

    def export(self, validation: Validation, progress: Progress) -> None:
        """Write the model folder from the weights as they are now."""
        tokenizers = self.texts.tokenizers
        save_model(
            self.folder.path,
            self.model,
            self.config,
            tokenizers=(tokenizers.src, tokenizers.tgt),
            card=model_card(
                self.recipe,
                self.config.model,
                progress,
                figures=validation.to_dict(),
                signature=self.score.signature,
            ),
        )

    def save(self, progress: Progress) -> None:
        """Write a checkpoint: everything that resuming needs."""
        checkpoint = Checkpoint(
            step=progress.step,
            weights=dict(self.model.named_parameters()),
            optimizer=optimizer_tensors(self.optimizer, self.model),
            random=random_state(),
            state={"progress": progress.to_dict(), "batches": self.batches.state_dict()},
        )
        config = self.recipe.train
        save_checkpoint(
            self.folder.checkpoints, checkpoint, keep=config.average_last, every=config.save_every
        )

    def resume(self, console: Console) -> Progress:
        """Go on from the newest checkpoint, if there is one."""
        saved = checkpoints(self.folder.checkpoints)
        if not saved:
            return Progress()
        checkpoint = load_checkpoint(saved[-1])
        _set_weights(self.model, checkpoint.weights)
        load_optimizer_tensors(self.optimizer, self.model, checkpoint.optimizer)
        self.batches.load_state_dict(checkpoint.state["batches"])
        set_random_state(checkpoint.random)
        console.print(f"Going on from step {checkpoint.step:,}.")
        progress = Progress(**checkpoint.state["progress"])
        exported = self.folder.exported  # an average, say, which no checkpoint knows of
        if exported and is_better(exported, progress.best, self.recipe.train.metric):
            progress.best = exported
        return progress

    def finish(self, progress: Progress, console: Console) -> None:
        """Put the average of the last checkpoints into the folder where it is the better model."""
        last = checkpoints(self.folder.checkpoints)[-self.recipe.train.average_last :]
        if len(last) > 1:
            _set_weights(self.model, average_weights(last))
            averaged = self.measure()
            better = is_better(averaged.to_dict(), progress.best, self.recipe.train.metric)
            console.print(
                f"The average of the last {len(last)} checkpoints: {averaged}; "
                + ("it is the model." if better else f"step {progress.best_step:,} is better.")
            )
            if better:
                progress.best = averaged.to_dict()
                self.export(averaged, progress)


@torch.no_grad()
def _set_weights(model: EncoderDecoder, weights: Mapping[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
