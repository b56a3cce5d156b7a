"""Tiny models, generated batches and silent reporters for the tests of training."""

import random
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.tasks.task import find_task, train
from dragoman.tasks.translate.batches import PairBatch
from dragoman.train.config import TrainConfig
from dragoman.train.job import unchecked
from dragoman.train.objective import summed_loss
from dragoman.train.optimizer import make_optimizer
from dragoman.train.progress import Progress
from dragoman.train.recipe import RunRecipe
from dragoman.train.report import Reporter
from dragoman.train.runfolder import RunFolder
from dragoman.train.step import Stepper, StepResult

PAD, BOS, EOS = 0, 2, 3
VOCAB = 30

TINY = EncoderDecoderConfig(
    src_vocab_size=VOCAB,
    tgt_vocab_size=VOCAB,
    d_model=16,
    num_heads=2,
    d_ff=24,
    num_encoder_layers=1,
    num_decoder_layers=1,
    norm_position="pre",
    dropout=0.0,
)
CONFIG = TrainConfig(max_steps=100)
RESULT = StepResult(loss=2.0, grad_norm=1.0, learning_rate=1e-3, num_tokens=10)


def make_model(
    config: EncoderDecoderConfig = TINY, dtype: torch.dtype = torch.float64
) -> EncoderDecoder:
    """Return a model with random weights, in training mode."""
    return EncoderDecoder(config).to(dtype).train()


def make_job(recipe: RunRecipe) -> tuple[Any, list[str]]:
    """Return the job of a recipe, with an empty folder, and its messages."""
    said: list[str] = []
    with RunFolder.of(recipe).open(recipe) as folder:
        return find_task(recipe.task).assemble(recipe, folder, said.append, unchecked), said


def make_stepper(
    model: EncoderDecoder, config: TrainConfig = CONFIG, smoothing: float = 0.1
) -> Stepper[PairBatch]:
    """Return a stepper for `model`, with the optimizer of `config`."""
    return Stepper(
        model=model,
        optimizer=make_optimizer(model, config),
        precision=no_autocast,
        loss=partial(batch_loss, model, smoothing),
        clip_norm=config.clip_norm,
    )


def batch_loss(model: EncoderDecoder, smoothing: float, batch: PairBatch) -> Tensor:
    """Sum the loss over the target's tokens, as the translation job does."""
    return summed_loss(model, batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT, smoothing)


def no_autocast() -> AbstractContextManager[object]:
    """Use the precision of the weights."""
    return nullcontext()


def make_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], first: int = 0) -> PairBatch:
    """Return a padded batch of pairs of ids, numbered from `first`."""
    tgt_out = [[*tgt, EOS] for _, tgt in pairs]
    num_targets = sum(map(len, tgt_out))
    return PairBatch(
        src_BS=_padded([[*src, EOS] for src, _ in pairs]),
        tgt_in_BT=_padded([[BOS, *tgt] for _, tgt in pairs]),
        tgt_out_BT=_padded(tgt_out),
        num_targets=num_targets,
        num_tokens=num_targets + sum(len(src) + 1 for src, _ in pairs),
        indices=np.arange(first, first + len(pairs)),
    )


def random_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    """Return pairs of random ids, 1 to 9 on a side."""

    def side() -> list[int]:
        return [random.randrange(4, VOCAB) for _ in range(random.randint(1, 9))]

    return [(side(), side()) for _ in range(count)]


def weights_of(model: EncoderDecoder) -> dict[str, Tensor]:
    """Return a copy of the weights."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def trained(recipe: RunRecipe) -> tuple[Mapping[str, float], str]:
    """Train to the end, and return the best step's scores and the messages."""
    console, file = make_console(terminal=False)
    best = train(recipe, console=console).progress.best
    assert best is not None
    return best, file.getvalue()


def make_console(*, terminal: bool) -> tuple[Console, StringIO]:
    """Return a console and its output file."""
    file = StringIO()
    return Console(file=file, force_terminal=terminal, width=200, highlight=False), file


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit files to `size` bytes, which has the same effect as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass
class Watcher(Reporter):
    """A reporter that records its calls."""

    steps: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    validated_at: list[int] = field(default_factory=list)

    def stepped(self, progress: Progress, result: StepResult) -> None:  # noqa: ARG002
        """Record a step."""
        self.steps.append(progress.step)

    def validated(self, progress: Progress, validation: object) -> None:  # noqa: ARG002
        """Record a validation."""
        self.validated_at.append(progress.step)

    def stopped(self, progress: Progress, reason: str) -> None:  # noqa: ARG002
        """Record the end."""
        self.reasons.append(reason)


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
