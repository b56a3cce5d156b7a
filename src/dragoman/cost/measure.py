"""Rates measured on the real thing: a few steps of the recipe's own job, here and now.

    measured = measure(work, console)

The job is assembled in a temporary folder as a run would do it, tokenizer and tokens included; then
a validation, a checkpoint, some steps and some decoding are timed. Where the recipe's data is not
here, batches of the recipe's shape with random ids take its place, and that is said.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from torch import Tensor, nn

from dragoman.cost.estimate import BATCH_TOKENS, Measured
from dragoman.cost.estimate_recipe import Work
from dragoman.cost.measure_made import made_job
from dragoman.decode import Beam, Forbid, Greedy, Limits, schedule, search
from dragoman.errors import InputError
from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly
from dragoman.nn import evaluation_view, inference
from dragoman.tasks.task import find_task
from dragoman.tasks.translate.job import Judgement, TranslateJob
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.texts import Tokenizers
from dragoman.train.job import unchecked
from dragoman.train.loop import Progress
from dragoman.train.run import Parts
from dragoman.train.runfolder import RunFolder
from dragoman.train.validate import Validation
from dragoman.wording import counted

__all__ = ["measure"]

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


def measure(work: Work, console: Console, *, least_seconds: float = LEAST_SECONDS) -> Measured:
    """Time the recipe's job, or one of its shape; leaves nothing behind.

    Steps are timed for `least_seconds` at least: with the rest it takes less than a minute.

    Raises InputError for what is wrong with the recipe or its data, the data's absence aside.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-cost-") as name:
        data = replace(work.recipe.data, cache=str(Path(name) / "cache"))
        recipe = replace(work.recipe, out=str(Path(name) / "run"), data=data)
        try:
            data.check()
        except InputError:
            real = False
        else:
            real = True
        with RunFolder.open(Path(recipe.out), recipe) as folder:
            begun = time.perf_counter()
            if real:
                job = find_task(recipe.task).assemble(recipe, folder, console.print, unchecked)
                if isinstance(job, TranslateJob):
                    job = replace(job, score=_Translating())
            else:
                job = made_job(work)
            parts = Parts.around(job, recipe, folder, console)
            prepare = time.perf_counter() - begun
            return _times(work, parts, prepare if real else None, least_seconds)


def _times(work: Work, parts: Parts, prepare: float | None, least_seconds: float) -> Measured:
    """Time a validation (of real data: `prepare` is then given), a checkpoint, steps, decoding."""
    progress = Progress()
    validation = _seconds(parts.measure)
    export = _seconds(lambda: parts.export(Validation(loss=0.0, scores={}), progress))
    _take(parts, progress, lambda steps: len(steps) >= WARM_UP)

    def enough(steps: list[Step]) -> bool:
        seconds = sum(step.seconds for step in steps)
        timed = len(steps) >= LEAST_STEPS and seconds >= least_seconds
        return timed or seconds >= MOST_SECONDS

    steps = _take(parts, progress, enough)
    tokens = sum(step.tokens for step in steps) / len(steps)
    each = np.array([step.seconds / step.tokens for step in steps])
    low, high = np.quantile(each, (0.25, 0.75))
    save = _seconds(lambda: parts.save(progress))
    speed = tokens_per_second(work, parts.job.model)
    what = (
        "the recipe's own job"
        if prepare is not None
        else "batches of the recipe's shape with random ids, since its data is not here"
    )
    return Measured(
        step_seconds=typical(each) * tokens,
        step_tokens=tokens,
        prepare_seconds=prepare or 0.0,
        validation_seconds=validation,
        save_seconds=save,
        export_seconds=export,
        tokens_per_second=speed,
        how=f"{counted(len(steps), 'step')} of {what}, half of them in {low * tokens:.3g} to "
        f"{high * tokens:.3g} s",
    )


def typical(times: npt.NDArray[np.float64]) -> float:
    """Return the mean of times, of which none counts for more than 1.5 times their median.

    A run is the sum of its steps, so the mean is what foretells it: the median misses the slow
    steps that every run has. But a burst of somebody else's work foretells nothing.
    """
    return float(np.minimum(times, SLOWEST * np.median(times)).mean())


class Step(NamedTuple):
    """A step that was timed."""

    seconds: float
    """Its time."""
    tokens: int
    """Its tokens, of both sides."""


def _take(parts: Parts, progress: Progress, enough: Callable[[list[Step]], bool]) -> list[Step]:
    """Take steps until there are enough of them."""
    steps: list[Step] = []
    while not enough(steps):
        start = time.perf_counter()
        result = parts.take_step(progress)  # its loss is a number, so the device is done
        steps.append(Step(time.perf_counter() - start, result.num_tokens))
        progress.step += 1
    return steps


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# ---------------------------------------------------------------- decoding


def tokens_per_second(work: Work, model: nn.Module) -> float | None:
    """Time a full batch of sentences, each decoded to the length of the work's answers.

    What the ids are makes no difference to the time. An encoder reads them.
    """
    model = evaluation_view(model)
    device = next(model.parameters()).device
    rows = max(1, BATCH_TOKENS // (work.length * work.beam_size))
    source_BS = torch.full((rows, work.length), SOME_ID, device=device)
    match model:
        case EncoderOnly():
            with inference(model):
                seconds = _seconds(lambda: model(source_BS).sum().item())
            return rows * work.length / seconds
        case EncoderDecoder() | DecoderOnly():
            lengths_B = torch.full((rows,), work.answer, device=device)
            write = _Writer(bos_id=work.config.bos_id, eos_id=work.config.eos_id)
            seconds = _seconds(lambda: write(model, source_BS, lengths_B, work.beam_size))
            return rows * work.answer / seconds
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Searches as translating does, but to given lengths: no sentence ends before."""

    bos_id: int
    eos_id: int

    def __call__(
        self,
        model: EncoderDecoder | DecoderOnly,
        source_BS: Tensor,
        lengths_B: Tensor,
        beam_size: int,
    ) -> None:
        strategy = Beam(beam_size=beam_size) if beam_size > 1 else Greedy()
        limits = Limits(bos_id=self.bos_id, eos_id=self.eos_id, max_B=lengths_B)
        never_ends = Forbid((self.eos_id,))
        with inference(model):
            if isinstance(model, EncoderDecoder):
                search(model, source_BS, strategy, processors=[never_ends], limits=limits)
            else:
                search(model, source_BS, strategy, processors=[never_ends], limits=limits)


@dataclass(frozen=True, slots=True)
class _Translating:
    """Stands for the score of translations: decodes each source to its reference's length.

    A model that has learnt nothing knows no end; a trained one ends about where the reference does.
    """

    def __call__(
        self,
        model: EncoderDecoder,
        tokenizers: Tokenizers,
        sources: list[str],
        references: list[str],
    ) -> Judgement:
        """Decode greedily, in the batches of translating."""
        src, tgt = tokenizers.src, tokenizers.tgt
        write = _Writer(bos_id=tgt.bos_id, eos_id=tgt.eos_id)
        wanted = [len(ids) + 1 for ids in tgt.encode_batch(references)]
        inputs = [[*ids, src.eos_id] for ids in src.encode_batch(sources)]
        device = next(model.parameters()).device
        for batch in schedule([len(ids) for ids in inputs], BATCH_TOKENS):
            longest = max(len(inputs[index]) for index in batch)
            rows = [
                inputs[index] + [src.pad_id] * (longest - len(inputs[index])) for index in batch
            ]
            lengths_B = torch.tensor([wanted[index] for index in batch], device=device)
            write(model, torch.tensor(rows, device=device), lengths_B, 1)
        return Judgement(scores=dict.fromkeys(TranslateRecipe.metrics, 0.0))
