"""Batches of tagged sentences.

The first piece of a word carries its tag, the other pieces carry none (Devlin et al. 2019,
section 5.3). A sentence over the limit is parted between words, so that every word is predicted.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import (
    BatchConfig,
    Planned,
    Stream,
    fingerprint_of,
    fixed_batches,
    framed,
    padded,
    plan_epoch,
)
from dragoman.data.dataset import Ragged, Splits, gather, sampled
from dragoman.data.tagged import TaggedDataset

__all__ = ["NO_TAG", "TagBatch", "TagBatches", "evaluation_batches"]

NO_TAG = -1
"""Stands in ``tags_BL`` where nothing is to be predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagBatch:
    """Padded sentences and their tags. In the names of tensors: B sentences, L positions.

    Predictions find their words by ``predicted[batch.words] = choices_BL[batch.tags_BL >= 0]``.
    """

    ids_BL: Tensor
    """bos, piece ids, eos, padding."""
    tags_BL: Tensor
    """The number of the tag at the first piece of each word, ``NO_TAG`` elsewhere."""
    words: npt.NDArray[np.int64]
    """The number in the dataset of each word, in the order of ``tags_BL[tags_BL >= 0]``."""
    num_tokens: int
    """Tokens without padding, with bos and eos."""
    indices: npt.NDArray[np.int64]
    """Which sentences these are; one that was parted may come again."""

    @property
    def num_targets(self) -> int:
        """The predictions that the loss sums over: words."""
        return len(self.words)

    def to(self, device: torch.device | str) -> "TagBatch":
        """The same batch on another device."""
        return replace(
            self,
            ids_BL=self.ids_BL.to(device, non_blocking=True),
            tags_BL=self.tags_BL.to(device, non_blocking=True),
        )


class TagBatches(Stream[TagBatch]):
    """Training batches of tagged sentences without end, those of like length together.

    ``splits`` are needed for subword sampling only, which then takes words apart but leaves each
    its tag.
    """

    def __init__(
        self,
        dataset: TaggedDataset,
        config: BatchConfig,
        *,
        seed: int,
        splits: Splits | None = None,
    ) -> None:
        self._dataset = dataset
        self._config = config
        self._splits = splits
        super().__init__(seed=seed)

    @property
    def fingerprint(self) -> str:
        """A hash of the dataset and the settings."""
        return fingerprint_of(self._dataset.content_hash, astuple(self._config))

    def draw(self, rng: np.random.Generator) -> Planned[TagBatch]:
        """Sample the pieces of all words, plan the batches, shuffle them."""
        pieces = sampled(self._dataset.pieces, self._splits, self._config.subword_sampling, rng)
        parts = _Parts.of(self._dataset, pieces, self._config.max_length)
        return plan_epoch(parts.lengths, self._config.max_tokens, rng, parts.batch)


def evaluation_batches(dataset: TaggedDataset, config: BatchConfig) -> Iterator[TagBatch]:
    """All sentences, each once, always in the same batches."""
    parts = _Parts.of(dataset, dataset.pieces, config.max_length)
    return fixed_batches(parts.lengths, config.max_tokens, parts.batch)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Sentences, those over the limit in parts: part i is the words from bounds[i]."""

    dataset: TaggedDataset
    pieces: Ragged
    """Of each word, perhaps sampled."""
    tags: npt.NDArray[np.int64]
    """Of each piece."""
    bounds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, dataset: TaggedDataset, pieces: Ragged, limit: int) -> "_Parts":
        pieces = pieces.cut(limit)
        tags = np.full(len(pieces.ids), NO_TAG, dtype=np.int64)
        tags[pieces.offsets[:-1]] = dataset.tags
        return cls(dataset, pieces, tags, _bounds(pieces.offsets, dataset.sentences, limit))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each part, with bos and eos."""
        return np.diff(self.pieces.offsets[self.bounds]) + 2

    def batch(self, rows: npt.NDArray[np.int64]) -> TagBatch:
        """The parts with these numbers as tensors."""
        first, last = self.bounds[rows], self.bounds[rows + 1]
        starts = self.pieces.offsets[first]
        lengths = self.pieces.offsets[last] - starts
        ids = gather(self.pieces.ids, starts, lengths)
        tags = gather(self.tags, starts, lengths)
        return TagBatch(
            ids_BL=framed(ids, self.dataset.special),
            tags_BL=padded(tags, NO_TAG, before=1, after=1),
            words=gather(np.arange(len(self.pieces)), first, last - first).ids.astype(np.int64),
            num_tokens=len(ids.ids) + 2 * len(rows),
            indices=np.searchsorted(self.dataset.sentences, first, side="right") - 1,
        )


def _bounds(
    pieces: npt.NDArray[np.int64], sentences: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.int64]:
    """Where sentences and parts of them begin, in words, so that no part is over the limit.

    ``pieces`` are the bounds of words in pieces, no word alone being over the limit.
    """
    (longer,) = np.nonzero(np.diff(pieces[sentences]) > limit)
    cuts: list[int] = []
    for sentence in longer:
        start, end = sentences[sentence], pieces[sentences[sentence + 1]]
        while end - pieces[start] > limit:
            start = np.searchsorted(pieces, pieces[start] + limit, side="right") - 1
            cuts.append(int(start))
    return np.union1d(sentences, np.array(cuts, dtype=np.int64))
