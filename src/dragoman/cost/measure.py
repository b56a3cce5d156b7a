"""Rates measured on the real thing: a few steps of the recipe's own job, here and now.

    measured = measure(work, console)

The job is assembled in a temporary folder as a run would do it, tokenizer and tokens included. If
the recipe's data is missing, batches of its shape with random ids take its place.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from torch import Tensor, nn

from dragoman.cost.counting import VALIDATED
from dragoman.cost.estimate import Timings, full_batch
from dragoman.data.batches import Epoch, Stream
from dragoman.engine import freeze
from dragoman.errors import InputError
from dragoman.folder.format import FolderConfig
from dragoman.folder.origin import Content
from dragoman.models import build
from dragoman.nn import evaluation_view, inference
from dragoman.tasks.task import find_task
from dragoman.tasks.translate.ids import write_to_lengths
from dragoman.train.job import CardPart, Job, Validation, evaluating, unchecked
from dragoman.train.recipe import Work
from dragoman.train.runfolder import RunFolder
from dragoman.train.trainer import Trainer
from dragoman.wording import counted

WARM_UP = 3
"""Steps that are not timed: the first ones allocate their memory."""
LEAST_STEPS, LEAST_SECONDS = 20, 30.0
"""Steps are timed until there are this many, and for this long, but ..."""
MOST_SECONDS = 60.0
"""... no longer than this."""
SLOWEST = 1.5
"""A slower step counts as this many times the median."""
SOME_ID = 5
"""Any id that is not special."""
AN_EPOCH = 1000
"""Batches in an epoch of random ids."""


def measure(work: Work, console: Console, *, least_seconds: float = LEAST_SECONDS) -> Timings:
    """Time the recipe's job, or one of its shape; leaves nothing behind.

    Steps are timed for at least `least_seconds`; with the rest, it takes less than a minute.

    Raises InputError for mistakes in the recipe or its data, except missing data.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-cost-") as name:
        data = replace(work.recipe.data, cache=str(Path(name) / "cache"))
        recipe = replace(work.recipe, out=str(Path(name) / "run"), data=data)
        with RunFolder.of(recipe).open(recipe) as folder:
            begun = time.perf_counter()
            job, what = _assemble(replace(work, recipe=recipe), folder, console)
            trainer = Trainer(job, recipe, folder, console)
            prepare = time.perf_counter() - begun
            validation = _seconds(trainer.measure)
            export = _seconds(lambda: trainer.export(Validation(loss=0.0)))
            _take_steps(trainer, WARM_UP, 0.0)
            seconds_S, tokens_S = _take_steps(trainer, LEAST_STEPS, least_seconds)
            save = _seconds(trainer.save)
    each_S, tokens = seconds_S / tokens_S, float(tokens_S.mean())
    low, high = tokens * np.quantile(each_S, (0.25, 0.75))
    steps = counted(len(each_S), "step")
    return Timings(
        step_seconds=typical(each_S) * tokens,
        step_tokens=tokens,
        prepare_seconds=0.0 if isinstance(job, RandomJob) else prepare,
        validation_seconds=validation,
        save_seconds=save,
        export_seconds=export,
        tokens_per_second=tokens_per_second(work, trainer.job.model),
        how=f"{steps} of {what}, half of them in {low:.3g} to {high:.3g} s",
    )


def _assemble(work: Work, folder: RunFolder, console: Console) -> tuple[Job[Any], str]:
    """Return the recipe's own job, or one of its shape if the data is missing; and which it is."""
    try:
        work.recipe.data.check()
    except InputError:
        said = "batches of the recipe's shape with random ids, since its data is not here"
        return RandomJob(work), said
    task, say = find_task(work.recipe.task), partial(console.print, markup=False, emoji=False)
    assembled = task.assemble(work.recipe, folder, say, unchecked)
    return task.as_trained(assembled), "the recipe's own job"


def typical(times: npt.NDArray[np.float64]) -> float:
    """Return the mean of times, none of which counts for more than 1.5 times their median.

    A run is the sum of its steps, so the mean predicts it: the median misses the slow steps that
    every run has. But a burst of work from another process predicts nothing.
    """
    return float(np.minimum(times, SLOWEST * np.median(times)).mean())


def _take_steps(trainer: Trainer, least: int, least_seconds: float) -> npt.NDArray[np.float64]:
    """Take at least `least` steps, for `least_seconds`, but no longer than `MOST_SECONDS`.

    Returns the seconds of each step and its tokens on both sides, `[2, S]`.
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


def tokens_per_second(work: Work, model: nn.Module) -> float:
    """Time a full batch of sentences, each decoded to the length of the work's answers.

    The values of the ids make no difference to the time. An encoder only reads them.
    """
    view: Any = evaluation_view(model)
    device = next(view.parameters()).device
    batch = full_batch(work, work.beam_size)
    source_BS = torch.full((batch.rows, work.length), SOME_ID, device=device)
    with inference(view):
        if not work.answer:
            return batch.tokens / _seconds(lambda: view(source_BS).sum().item())
        lengths_B = torch.full((batch.rows,), work.answer, device=device)
        ends = (work.config.bos_id, work.config.eos_id)
        frozen: Any = freeze(view, "fp32")
        write = partial(write_to_lengths, frozen, source_BS, lengths_B, ends, work.beam_size)
        return batch.rows * work.answer / _seconds(write)


class RandomJob:
    """A model of the work's kind and the task's own loss, on batches of random ids."""

    def __init__(self, work: Work) -> None:
        torch.manual_seed(work.recipe.train.seed)
        self.work = work
        self.config = FolderConfig(model=work.config)
        self.model = build(work.config)
        self.tokenizers = (Content(b""),) * 2  # of no text
        self.fingerprint = repr(work.shape)
        self.batches: Stream[Any] = Stream(self, seed=1)

    def draw(self, rng: np.random.Generator) -> Epoch[Any]:
        """Draw an epoch of batches of the work's shape."""
        seed = int(rng.integers(1 << 30))

        def make(number: int) -> Any:  # noqa: ANN401 (of the task's own class)
            rng = np.random.default_rng([seed, number])
            return self.work.recipe.sample(self.work.config, self.work.shape, rng)

        return Epoch(count=AN_EPOCH, examples=0, padding=0.0, largest=(0,), make=make)

    def loss(self, batch: Any) -> Tensor:  # noqa: ANN401 (of the task's own class)
        """Sum the task's loss over the batch's targets; with R-Drop, each row is read twice."""
        recipe = self.work.recipe
        smoothing, loss = recipe.train.label_smoothing, torch.zeros(())
        for _ in range(2 if recipe.train.r_drop and self.model.training else 1):
            loss = loss + recipe.loss(self.model, batch, smoothing)
        return loss

    def measure(self) -> Validation:
        """Run a thousand rows forward; nothing is decoded."""
        with evaluating(self.model) as device:
            epoch = self.draw(np.random.default_rng(0))
            for number in range(-(-VALIDATED // self.work.shape.rows)):
                self.loss(epoch.make(number).to(device))
        return Validation(loss=0.0)

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """State that this is not a trained model."""
        return CardPart(title="Random ids", data=(), architecture="", judged="", use="")
