"""Rates measured on the real thing: a few steps of the recipe's own job, here and now.

    measured = measure(work, console)

The job is assembled in a temporary folder as a run would do it, tokenizer and tokens included; then
a validation, a checkpoint, some steps and some decoding are timed. If the recipe's data is missing,
batches of the recipe's shape with random ids take its place, and the report says so.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from torch import Tensor, nn

from dragoman.cost.estimate import VALIDATED, Timings, full_batch
from dragoman.data.batches import Epoch, Stream
from dragoman.engine import freeze
from dragoman.errors import InputError
from dragoman.folder.format import FolderConfig, Saves
from dragoman.models import Model, build
from dragoman.nn import evaluation_view, inference
from dragoman.tasks.task import find_task
from dragoman.tasks.timing import write_to_lengths
from dragoman.train.job import CardPart, Validation, evaluating, unchecked
from dragoman.train.recipe import Work
from dragoman.train.runfolder import RunFolder
from dragoman.train.trainer import Trainer
from dragoman.wording import counted

WARM_UP = 3
"""Steps that are not timed: the first ones find their memory."""
LEAST_STEPS, LEAST_SECONDS = 20, 30.0
"""Steps are timed until there are so many, and for so long, but ..."""
MOST_SECONDS = 60.0
"""... no longer than this."""
SLOWEST = 1.5
"""Times the median: what a slower step counts as."""
SOME_ID = 5
"""Any id that is no special one."""
AN_EPOCH = 1000
"""Batches of an epoch of random ids."""


def measure(work: Work, console: Console, *, least_seconds: float = LEAST_SECONDS) -> Timings:
    """Time the recipe's job, or one of its shape; leaves nothing behind.

    Steps are timed for `least_seconds` at least: with the rest it takes less than a minute.

    Raises InputError for what is wrong with the recipe or its data, the data's absence aside.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-cost-") as name:
        data = replace(work.recipe.data, cache=str(Path(name) / "cache"))
        recipe = replace(work.recipe, out=str(Path(name) / "run"), data=data)
        real = True
        try:
            data.check()
        except InputError:
            real = False
        with RunFolder.of(recipe).open(recipe) as folder:
            begun = time.perf_counter()
            if real:
                task = find_task(recipe.task)
                say = partial(console.print, markup=False, emoji=False)
                job = task.as_trained(task.assemble(recipe, folder, say, unchecked))
            else:
                job = random_job(work)
            trainer = Trainer(job, recipe, folder, console)
            prepare = time.perf_counter() - begun
            return _times(work, trainer, prepare if real else None, least_seconds)


def _times(work: Work, trainer: Trainer, prepare: float | None, least_seconds: float) -> Timings:
    """Time a validation (of real data: `prepare` is then given), a checkpoint, steps, decoding."""
    validation = _seconds(trainer.measure)
    export = _seconds(lambda: trainer.export(Validation(loss=0.0)))
    _take_steps(trainer, WARM_UP, 0.0)
    seconds_S, tokens_S = _take_steps(trainer, LEAST_STEPS, least_seconds)
    each_S, tokens = seconds_S / tokens_S, float(tokens_S.mean())
    low, high = tokens * np.quantile(each_S, (0.25, 0.75))
    what = "the recipe's own job"
    if prepare is None:
        what = "batches of the recipe's shape with random ids, since its data is not here"
    steps = counted(len(each_S), "step")
    return Timings(
        step_seconds=typical(each_S) * tokens,
        step_tokens=tokens,
        prepare_seconds=prepare or 0.0,
        validation_seconds=validation,
        save_seconds=_seconds(trainer.save),
        export_seconds=export,
        tokens_per_second=tokens_per_second(work, trainer.job.model),
        how=f"{steps} of {what}, half of them in {low:.3g} to {high:.3g} s",
    )


def typical(times: npt.NDArray[np.float64]) -> float:
    """Return the mean of times, of which none counts for more than 1.5 times their median.

    A run is the sum of its steps, so the mean is what predicts it: the median misses the slow
    steps that every run has. But a burst of somebody else's work predicts nothing.
    """
    return float(np.minimum(times, SLOWEST * np.median(times)).mean())


def _take_steps(trainer: Trainer, least: int, least_seconds: float) -> npt.NDArray[np.float64]:
    """Take so many steps for so long, but no longer than `MOST_SECONDS`.

    Returns the seconds of each step and its tokens of both sides, `[2, S]`.
    """
    steps: list[tuple[float, int]] = []
    begun = time.perf_counter()
    while (passed := time.perf_counter() - begun) < MOST_SECONDS:
        if len(steps) >= least and passed >= least_seconds:
            break
        start = time.perf_counter()
        result = trainer.take_step()  # its loss is a number, so the device is done
        steps.append((time.perf_counter() - start, result.num_tokens))
        trainer.progress.step += 1
    return np.array(steps, float).T


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# ---------------------------------------------------------------- decoding


def tokens_per_second(work: Work, model: nn.Module) -> float:
    """Time a full batch of sentences, each decoded to the length of the work's answers.

    What the ids are makes no difference to the time. An encoder reads them.
    """
    model = evaluation_view(model)
    device = next(model.parameters()).device
    batch = full_batch(work, work.beam_size)
    source_BS = torch.full((batch.rows, work.length), SOME_ID, device=device)
    if not work.answer:
        with inference(model):
            seconds = _seconds(lambda: model(source_BS).sum().item())
        return batch.tokens / seconds
    lengths_B = torch.full((batch.rows,), work.answer, device=device)
    ends = (work.config.bos_id, work.config.eos_id)
    decoder: Any = model  # which writes, since there is an answer
    with inference(model):
        frozen: Any = freeze(decoder, "fp32")
        seconds = _seconds(
            lambda: write_to_lengths(frozen, source_BS, lengths_B, ends, work.beam_size)
        )
    return batch.rows * work.answer / seconds


# ---------------------------------------------------------------- a job without data


@dataclass(frozen=True, slots=True)
class _RandomBatches:
    """Batches of one shape with ids drawn at random."""

    work: Work

    @property
    def fingerprint(self) -> str:
        """The shape is all that there is."""
        return repr(self.work.shape)

    def draw(self, rng: np.random.Generator) -> Epoch[Any]:
        """Draw an epoch."""
        make = partial(self._make, int(rng.integers(1 << 30)))
        return Epoch(count=AN_EPOCH, examples=0, padding=0.0, largest=(0,), make=make)

    def _make(self, seed: int, number: int) -> Any:  # noqa: ANN401 (of the task's own class)
        rng = np.random.default_rng([seed, number])
        return self.work.recipe.sample(self.work.config, self.work.shape, rng)


class _NoTokenizer:
    """A tokenizer of no text."""

    def save(self, path: Path) -> None:
        """Write an empty file."""
        path.touch()


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomJob:
    """A model of the work's kind and the task's own loss, on batches of random ids."""

    work: Work
    config: FolderConfig
    model: Model
    batches: Stream[Any]
    tokenizers: tuple[Saves, Saves] = (_NoTokenizer(), _NoTokenizer())

    def loss(self, batch: Any) -> Tensor:  # noqa: ANN401 (of the task's own class)
        """Sum the task's loss over the batch's targets; by R-Drop each row is read twice."""
        recipe = self.work.recipe
        smoothing, loss = recipe.train.label_smoothing, torch.zeros(())
        for _ in range(2 if recipe.train.r_drop and self.model.training else 1):
            loss = loss + recipe.loss(self.model, batch, smoothing)
        return loss

    def measure(self) -> Validation:
        """Run a thousand rows forward; nothing is decoded."""
        with evaluating(self.model) as device:
            epoch = self.batches.source.draw(np.random.default_rng(0))
            for number in range(-(-VALIDATED // self.work.shape.rows)):
                self.loss(epoch.make(number).to(device))
        return Validation(loss=0.0)

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Say that it is no model of anything."""
        return CardPart(title="Random ids", data=(), architecture="", judged="", use="")


def random_job(work: Work) -> RandomJob:
    """Build the work's model and the batches that stand for its data."""
    torch.manual_seed(work.recipe.train.seed)
    return RandomJob(
        work=work,
        config=FolderConfig(model=work.config),
        model=build(work.config),
        batches=Stream(_RandomBatches(work), seed=1),
    )
