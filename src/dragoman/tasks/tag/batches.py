"""Batches of tagged sentences.

The first piece of a word carries its tag, the other pieces carry none (Devlin et al. 2019, section
5.3). A word without pieces is not predicted. A sentence over the limit is split between words, so
that every other word is predicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig, Examples, SequenceBatches
from dragoman.data.dataset import Ragged, Splits, gather
from dragoman.data.padding import framed, padded
from dragoman.data.tagged import TaggedDataset
from dragoman.tasks.encoders import TextBatch

NO_TAG = -1
"""The value in `tags_BL` where nothing is to be predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagBatch(TextBatch):
    """Padded sentences and their tags.

    Predictions find their words by `predicted[batch.words] = choices_BL[batch.tags_BL >= 0]`.
    """

    tags_BL: Tensor
    """The number of the tag at the first piece of each word, `NO_TAG` elsewhere."""
    words_BLF: Tensor | None = None
    """The features of each word, at its first piece; zeros elsewhere."""
    words: npt.NDArray[np.int64]
    """The number of each word in the dataset, in the order of `tags_BL[tags_BL >= 0]`."""

    def reading(self, ids_BL: Tensor) -> Self:
        """Return the batch with other ids; a word whose piece is hidden loses its features."""
        words_BLF = self.words_BLF
        if words_BLF is not None:
            words_BLF = words_BLF.masked_fill((ids_BL != self.ids_BL)[..., None], 0)
        return replace(self, ids_BL=ids_BL, words_BLF=words_BLF)


def tag_batches(
    dataset: TaggedDataset, config: BatchConfig, splits: Splits | None = None
) -> SequenceBatches[TagBatch]:
    """Return the batches of tagged sentences; those over the limit are split.

    Subword sampling splits words but leaves each its tag.
    """
    return SequenceBatches(
        sequences=dataset.pieces,
        examples=partial(_parts, dataset, config.max_length),
        content_hash=dataset.content_hash,
        config=config,
        splits=splits,
    )


def features_at(
    first_BL: Tensor, features: Sequence[Sequence[int]] | npt.NDArray[np.int64]
) -> Tensor | None:
    """Return the features of words at their first pieces; None if they have none."""
    features_MF = torch.as_tensor(features, dtype=torch.int64)
    if not features_MF.numel():
        return None
    words_BLF = torch.zeros(*first_BL.shape, features_MF.shape[1], dtype=torch.int64)
    words_BLF[first_BL] = features_MF
    return words_BLF


def _parts(dataset: TaggedDataset, limit: int, pieces: Ragged) -> Examples[TagBatch]:
    """Return sentences, their words perhaps sampled; those over the limit are split."""
    pieces = pieces.cut(limit)
    has_pieces = pieces.lengths > 0
    tags_of = np.full(len(pieces.ids), NO_TAG, dtype=np.int64)  # of each piece
    tags_of[pieces.offsets[:-1][has_pieces]] = dataset.tags[has_pieces]
    bounds = _bounds(pieces.offsets, dataset.sentences, limit)
    filled = np.diff(pieces.offsets[bounds]) > 0
    firsts, lasts = bounds[:-1][filled], bounds[1:][filled]  # words of each part
    starts, ends = pieces.offsets[firsts], pieces.offsets[lasts]

    def collate(rows: npt.NDArray[np.int64]) -> TagBatch:
        ids = gather(pieces.ids, starts[rows], ends[rows] - starts[rows])
        tags = gather(tags_of, starts[rows], ends[rows] - starts[rows])
        first, count = firsts[rows], lasts[rows] - firsts[rows]
        words = gather(np.arange(len(pieces)), first, count).ids.astype(np.int64)
        words = words[has_pieces[words]]
        tags_BL = padded(tags, NO_TAG, before=1, after=1)
        return TagBatch(
            ids_BL=framed(ids, dataset.special),
            tags_BL=tags_BL,
            words_BLF=features_at(tags_BL != NO_TAG, dataset.features[words]),
            words=words,
            num_tokens=len(ids.ids) + 2 * len(rows),
            num_targets=len(words),
            indices=np.searchsorted(dataset.sentences, first, side="right") - 1,
        )

    return Examples(ends - starts + 2, collate)


def _bounds(
    pieces: npt.NDArray[np.int64], sentences: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.int64]:
    """Return where sentences and parts of them begin, in words, so that each fits the limit.

    `pieces` are the bounds of words in pieces; no single word is over the limit.
    """
    (longer,) = np.nonzero(np.diff(pieces[sentences]) > limit)
    cuts: list[int] = []
    for sentence in longer:
        start, end = sentences[sentence], pieces[sentences[sentence + 1]]
        while end - pieces[start] > limit:
            start = np.searchsorted(pieces, pieces[start] + limit, side="right") - 1
            cuts.append(int(start))
    return np.union1d(sentences, np.array(cuts, dtype=np.int64))
