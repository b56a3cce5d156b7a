"""A job without data: batches of a recipe's shape whose ids are drawn at random."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.cost.estimate_recipe import Work
from dragoman.data.batches import Batch, Stream
from dragoman.models import (
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    Model,
    ModelConfig,
    build,
)
from dragoman.models.folder import FolderConfig, Saves
from dragoman.models.heads import MaskedLanguageOutput
from dragoman.tasks.generate.batches import LanguageBatch
from dragoman.train.job import CardPart
from dragoman.train.objective import masked_loss, next_token_loss, summed_loss
from dragoman.train.validate import Validation, evaluating

__all__ = ["made_job"]

FIRST_ID = 4  # after the special ones
AN_EPOCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBatch(Batch):
    """Full rows of ids, without padding. In the names of tensors: B rows, S source, L length."""

    src_BS: Tensor
    """Source ids; no column where there is no source."""
    ids_BL: Tensor
    """Target ids, or the text."""


@dataclass(frozen=True, slots=True)
class MadeBatches:
    """Batches of one shape without end."""

    work: Work
    vocab: tuple[int, int]

    @property
    def fingerprint(self) -> str:
        """The shape is all that there is."""
        return repr(self.work.shape)

    def draw(self, rng: np.random.Generator) -> "_Epoch":
        """Draw an epoch, whose batches are made when they are asked for."""
        return _Epoch(self.work, self.vocab, int(rng.integers(1 << 30)))


@dataclass(frozen=True, slots=True)
class _Epoch:
    work: Work
    vocab: tuple[int, int]
    seed: int
    padding: float = 0.0

    def __len__(self) -> int:
        return AN_EPOCH

    def __getitem__(self, number: int, /) -> MadeBatch:
        rng = np.random.default_rng([self.seed, number])
        shape, (src_vocab, vocab) = self.work.shape, self.vocab
        src, ids = (
            torch.from_numpy(rng.integers(FIRST_ID, size, (shape.rows, length)))
            for size, length in ((src_vocab, shape.src_length), (vocab, shape.length))
        )
        targets = shape.targets or shape.rows * shape.length
        return MadeBatch(
            src_BS=src,
            ids_BL=ids,
            num_targets=targets,
            num_tokens=src.numel() + ids.numel(),
            indices=np.arange(shape.rows),
        )


class _Nothing:
    """A tokenizer of no text."""

    def save(self, path: Path) -> None:
        """Write an empty file."""
        path.touch()


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeJob:
    """A model of the work's kind, and what takes the time of its task's loss."""

    work: Work
    config: FolderConfig
    model: Model
    batches: Stream[MadeBatch]
    tokenizers: tuple[Saves, Saves] = (_Nothing(), _Nothing())

    def loss(self, batch: MadeBatch) -> Tensor:
        """Sum a loss over the batch's targets, as the task does."""
        smoothing = self.work.recipe.train.label_smoothing
        ids_BL = batch.ids_BL
        match self.model:
            case EncoderDecoder() as model:
                return summed_loss(model, batch.src_BS, ids_BL, ids_BL, smoothing)
            case DecoderOnly() as model:
                return next_token_loss(model, _as_text(batch), smoothing)
            case EncoderOnly() as model:
                return _encoder_loss(model, batch, smoothing)

    def measure(self) -> Validation:
        """Run a thousand rows forward; nothing is decoded."""
        shape = self.work.shape
        with evaluating(self.model) as device:
            for number in range(-(-1000 // shape.rows)):
                self.loss(self.batches.source.draw(np.random.default_rng(0))[number].to(device))
        return Validation(loss=0.0)

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Say that it is no model of anything."""
        return CardPart(title="Made", data=(), architecture="", judged="", use="")


def made_job(work: Work) -> MadeJob:
    """Build the work's model and the batches that stand for its data."""
    torch.manual_seed(work.recipe.train.seed)
    return MadeJob(
        work=work,
        config=FolderConfig(model=work.config),
        model=build(work.config),
        batches=Stream(MadeBatches(work, _vocabularies(work.config)), seed=1),
    )


def _vocabularies(config: ModelConfig) -> tuple[int, int]:
    if config.kind == "encoder-decoder":
        return config.src_vocab_size, config.tgt_vocab_size
    return config.vocab_size, config.vocab_size


def _as_text(batch: MadeBatch) -> LanguageBatch:
    rows, length = batch.ids_BL.shape
    return LanguageBatch(
        inputs_BL=batch.ids_BL,
        targets_BL=batch.ids_BL,
        document_lengths=None,
        num_tokens=rows * length,
        num_targets=rows * length,
        indices=batch.indices,
    )


def _encoder_loss(model: EncoderOnly, batch: MadeBatch, smoothing: float) -> Tensor:
    """The loss of the model's head: hidden words, or the first of its labels everywhere."""
    ids_BL = batch.ids_BL
    if isinstance(model.head, MaskedLanguageOutput):
        hidden_BL = torch.arange(ids_BL.numel(), device=ids_BL.device).view_as(ids_BL)
        targets_BL = torch.where(hidden_BL < batch.num_targets, ids_BL, -1)
        return masked_loss(model, ids_BL, targets_BL, smoothing)
    logits = model(ids_BL).flatten(0, -2)
    right = torch.zeros(len(logits), dtype=torch.long, device=ids_BL.device)
    return F.cross_entropy(logits.float(), right, label_smoothing=smoothing, reduction="sum")
