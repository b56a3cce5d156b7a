r"""Batches for masked language models: some tokens are hidden, and what they were is the target.

Devlin et al. (2019, section 3.1): of each text 15 % of the tokens are chosen, at least one; of the
chosen 80 % are replaced by the mask token, 10 % by a random piece, and 10 % are unchanged, since no
mask will be seen later. The choice is drawn anew each epoch (RoBERTa, Liu et al. 2019, section
4.1). Texts longer than the limit are split.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig, Epoch, Examples, SequenceBatches
from dragoman.data.dataset import (
    Ragged,
    SpecialIds,
    Splits,
    TextDataset,
    fingerprint_of,
    gather,
    windows_over,
)
from dragoman.data.padding import NO_TARGET, framed
from dragoman.errors import InputError
from dragoman.ranges import Probability, Range, check_ranges
from dragoman.tasks.encoders import TextBatch
from dragoman.text.tokenizer import MASK, Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskConfig:
    """What is hidden, and how."""

    share: Annotated[float, Range(above=0, most=1)] = 0.15
    """Fraction of the tokens to predict."""
    masked: Probability = 0.8
    """Fraction of these that are replaced by the mask token."""
    random: Probability = 0.1
    """Fraction of these that are replaced by a random piece; the rest stay unchanged."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.masked + self.random > 1.0:
            raise InputError(
                f"masked ({self.masked}) and random ({self.random}) are more than 1 together"
            )


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The ids that hide what is to be predicted."""

    mask_id: int
    pieces: tuple[int, int]
    """The smallest id of a piece, and the number of all ids: the range of random pieces."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Vocabulary":
        """Return the vocabulary of a tokenizer. Raises InputError if it has no mask token."""
        return cls(tokenizer.special_id(MASK), (tokenizer.first_piece, tokenizer.vocab_size))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedBatch(TextBatch):
    """Padded texts, some of whose tokens are hidden.

    A text that was split may be in `indices` several times.
    """

    targets_BL: Tensor
    """The original ids at the chosen positions, `NO_TARGET` elsewhere."""


@dataclass(frozen=True, slots=True)
class MaskedBatches:
    """Batches of partly hidden texts, grouped by similar length."""

    dataset: TextDataset
    config: BatchConfig
    vocabulary: Vocabulary
    masking: MaskConfig
    splits: Splits | None = None
    """Needed for subword sampling only."""

    @property
    def fingerprint(self) -> str:
        """A hash of the texts and the settings."""
        settings = [astuple(part) for part in (self.config, self.vocabulary, self.masking)]
        return fingerprint_of(self.dataset.content_hash, settings)

    @property
    def _parts(self) -> "SequenceBatches[_Parts]":
        """The parts of texts, nothing hidden."""
        return SequenceBatches(
            sequences=self.dataset.texts,
            examples=partial(_in_parts, self.dataset.special, self.config.max_length),
            content_hash=self.dataset.content_hash,
            config=self.config,
            splits=self.splits,
        )

    def draw(self, rng: np.random.Generator) -> Epoch[MaskedBatch]:
        """Sample the pieces, plan the batches, shuffle them, and draw what hides their tokens."""
        if not len(self.dataset.texts.ids):
            raise InputError(f"There is nothing to learn from: {self.dataset.name} holds no text.")
        planned: Epoch[Any] = self._parts.draw(rng)
        key = int(rng.integers(1 << 62))
        return replace(planned, make=lambda number: self._hide(planned.make(number), key, number))

    def fixed(self) -> Iterator[MaskedBatch]:
        """Yield all texts, each once, always in the same batches with the same tokens hidden."""
        return (self._hide(parts, 0, number) for number, parts in enumerate(self._parts.fixed()))

    def _hide(self, parts: "_Parts", *seed: int) -> MaskedBatch:
        """Draw what is hidden, with a separate generator for each batch."""
        (texts, indices), rng = parts, np.random.default_rng(seed)
        original_BL = framed(texts, self.dataset.special).numpy()
        chosen_BL = _chosen(texts.lengths, self.masking.share, rng)
        hidden_BL = _hidden(original_BL, self.vocabulary, self.masking, rng)
        return MaskedBatch(
            ids_BL=torch.from_numpy(np.where(chosen_BL, hidden_BL, original_BL)),
            targets_BL=torch.from_numpy(np.where(chosen_BL, original_BL, NO_TARGET)),
            num_tokens=len(texts.ids) + 2 * len(texts),
            num_targets=int(chosen_BL.sum()),
            indices=indices,
        )


def _in_parts(special: SpecialIds, limit: int, texts: Ragged) -> "Examples[_Parts]":
    """Return texts without bos and eos, those over the limit split."""
    filled = np.nonzero(texts.lengths)[0]
    starts, stops = texts.offsets[filled], texts.offsets[filled + 1]
    starts = starts + (texts.ids[starts] == special.bos_id)
    lengths = np.maximum(0, stops - (texts.ids[stops - 1] == special.eos_id) - starts)
    of, before, after = windows_over(lengths, limit, limit)
    starts, counts = starts[of] + before, after - before  # of each part

    def collate(rows: npt.NDArray[np.int64]) -> _Parts:
        return gather(texts.ids, starts[rows], counts[rows]), filled[of[rows]]

    return Examples(counts + 2, collate)


_Parts = tuple[Ragged, npt.NDArray[np.int64]]
"""The ids of parts, and the numbers of their texts."""


def _chosen(
    lengths: npt.NDArray[np.int64], share: float, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw the share of each text's positions, at least one; shape (B, L) with bos and eos."""
    place = np.arange(lengths.max(initial=0) + 2)
    is_text = (place > 0) & (place <= lengths[:, None])
    lots = np.where(is_text, rng.random(is_text.shape), 2.0)
    ranks = lots.argsort(axis=1).argsort(axis=1)
    counts = np.maximum(1, np.rint(share * lengths))
    chosen: npt.NDArray[np.bool_] = is_text & (ranks < counts[:, None])
    return chosen


def _hidden(
    original_BL: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    config: MaskConfig,
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Return what replaces each position if it is chosen: mask, random piece or the same."""
    lots_BL = rng.random(original_BL.shape)
    pieces_BL = rng.integers(*vocabulary.pieces, original_BL.shape)
    replaced_BL = np.where(lots_BL < config.masked + config.random, pieces_BL, original_BL)
    return np.where(lots_BL < config.masked, vocabulary.mask_id, replaced_BL)
