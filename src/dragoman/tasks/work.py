"""What estimates ask of a task: how large a recipe's batches are, and a batch to run them with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.decode import Beam, Forbid, Greedy, Limits, Model, search
from dragoman.errors import InputError
from dragoman.models import ModelConfig
from dragoman.models.plan import Planner
from dragoman.nn import inference
from dragoman.train.recipe import RunRecipe
from dragoman.train.start import with_labels

LENGTH = 30
"""Tokens of a sentence, on each side, unless a length is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a batch is."""

    rows: int
    """Sentences, or texts."""
    src_length: int = 0
    """Source tokens of a row; 0 where there is no source."""
    length: int = 0
    """Target tokens of a row (encoder-decoder), or tokens."""
    targets: int | None = None
    """Predictions in the whole batch; one for each token or text by default."""
    documents: tuple[int, ...] | None = None
    """Lengths of the documents that each row is packed from, together `length`; None without."""

    @property
    def tokens(self) -> int:
        """Tokens of both sides."""
        return self.rows * (self.src_length + self.length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a recipe asks of a device."""

    recipe: RunRecipe
    config: ModelConfig
    """The model, with the sizes of its vocabularies."""
    length: int
    """Tokens of a sentence, on each side."""
    shape: Shape
    """A full batch."""
    longest: int
    """Tokens that a row may have on a side."""
    answer: int = 0
    """Tokens that the model writes for each input; 0 for an encoder."""
    beam_size: int = 1
    """Hypotheses that decoding keeps."""
    vocab_size: int = 0
    """Tokens that the model chooses from; 0 where it predicts labels."""

    @property
    def step_tokens(self) -> int:
        """Tokens of a step of the optimizer."""
        return self.recipe.train.accumulate * self.shape.tokens


def _fewer_tokens(recipe: object, shape: Shape, share: float) -> str:  # noqa: ARG001
    return f"batch.max_tokens to about {int(share * shape.tokens):,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What estimates ask of a task."""

    work: Callable[[Any, int | None], Work]
    """The work of a recipe whose sentences have this many tokens on each side, `LENGTH` if None.

    A vocabulary that training will make counts as large as the recipe asks for. Raises InputError
    for a length beyond the recipe's own: no batch would hold such a sentence.
    """
    sample: Callable[[Any, Shape, np.random.Generator], Any]
    """A batch of this shape for a model config, of the task's own class, with random ids."""
    loss: Callable[[Any, Any, float], Tensor]
    """The loss of a model on a batch, summed over its targets, with this label smoothing."""
    shape: Callable[[Any], Shape]
    """The shape of one of the task's batches."""
    sources: Callable[[Any, Any, int], list[int]] = lambda *_: []
    """Lengths of the texts of a batch, with this model config, that a validation translates.

    Of the texts whose number is below the limit.
    """
    as_trained: Callable[[Any], Any] = lambda job: job
    """The task's job with a validation that takes as long as that of a trained model."""
    smaller: Callable[[Any, Shape, float], str] = _fewer_tokens
    """The setting of a recipe with which a batch has about this share of a shape, in words."""


def sentence_length(length: int | None, key: str, most: int) -> int:
    """Return the given length, or a usual one. Raises InputError if the recipe has less room."""
    if length is not None and length > most:
        raise InputError(
            f"length = {length} is over the recipe's {key} = {most}: ask for {most} or less, or "
            f"add {key}={length} to the recipe's settings"
        )
    return min(LENGTH, most) if length is None else length


def text_work(
    recipe: Any,  # noqa: ANN401 (of any task of an encoder)
    length: int | None,
    targets: float | None = None,
) -> Work:
    """Return the work of an encoder on texts.

    It predicts a share `targets` of their tokens; a label for each text or word if None.
    """
    batch = recipe.batch
    tokens = sentence_length(length, "batch.max_length", batch.max_length)
    rows = max(1, batch.max_tokens // tokens)
    predicted = None if targets is None else round(targets * rows * tokens)
    size = recipe.model.vocab_size or recipe.tokenizer.vocab_size
    return Work(
        recipe=recipe,
        config=with_labels(replace(recipe.model, vocab_size=size)),
        length=tokens,
        shape=Shape(rows=rows, length=tokens, targets=predicted),
        longest=batch.max_length,
        vocab_size=0 if targets is None else size,
    )


def text_shape(batch: Any) -> Shape:  # noqa: ANN401 (of any task of an encoder)
    """Return the shape of a batch of texts."""
    rows, length = batch.ids_BL.shape
    return Shape(rows=rows, length=length, targets=batch.num_targets)


def write_to_lengths(
    planner: Planner,
    source_BS: Tensor,
    lengths_B: Tensor,
    ends: tuple[int, int],
    beam_size: int = 1,
) -> None:
    """Search as translating does, but to given lengths: `ends` are bos and eos, which none has."""
    bos_id, eos_id = ends
    never_ends = [Forbid((eos_id,))]
    strategy = Beam(beam_size=beam_size) if beam_size > 1 else Greedy()
    limits = Limits(bos_id=bos_id, eos_id=eos_id, max_B=lengths_B)
    with inference(planner.model):
        planned: Model[Any] = planner(beam_size)
        search(planned, source_BS, strategy, processors=never_ends, limits=limits)


def random_ids(
    size: tuple[int, int], vocab_size: int, pad_id: int, rng: np.random.Generator
) -> Tensor:
    """Draw ids other than padding."""
    ids = rng.integers(0, vocab_size - 1, size)
    return torch.from_numpy(ids + (ids >= pad_id))


def some_targets(ids_BL: Tensor, targets: int | None, nothing: int) -> Tensor:
    """Keep the first `targets` ids, all if None, and put `nothing` in the place of the others."""
    if targets is None:
        return ids_BL
    return ids_BL.where(torch.arange(ids_BL.numel()).view_as(ids_BL) < targets, nothing)
