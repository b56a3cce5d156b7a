r"""Batches for language models: the stream of ids in windows, or whole documents in long rows.

    stream      rows of `length` ids, cut from the stream wherever a row ends; the documents of a
                row see each other
    documents   one row of `rows * length` ids, filled with whole documents that do not see each
                other: their lengths say where each ends (Krell et al. 2021 pack this way)

The target of a position is the next id; in dialogues, only if it is part of an answer. In
validation, each is predicted once, with at least `length - stride` ids before it (if there are so
many): windows advance by `stride` and only their last `stride` predictions count.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from dragoman.data.batches import Batch, Epoch
from dragoman.data.dataset import Ragged, Splits, fingerprint_of, gather, sampled, windows_over
from dragoman.data.documents import DocumentDataset
from dragoman.data.padding import NO_TARGET, padded
from dragoman.data.shape import Shape
from dragoman.errors import InputError
from dragoman.ranges import Count, Millions, Probability, check_ranges
from dragoman.tasks.generate.dialogue import in_answers
from dragoman.tasks.generate.middle import Middle

Places = npt.NDArray[np.int64]
Ids = npt.NDArray[np.integer]

ADDED = 3
"""Inputs that a rearranged document has in addition to its own ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackConfig:
    """How a text is put into batches for a language model."""

    length: Count = 256
    """Number of ids in a row: the training context."""
    rows: Millions = 32
    """Number of rows of this length per batch; packed documents share one row of the same total
    length."""
    packing: Literal["stream", "documents"] = "stream"
    """"stream": windows of the whole text; "documents": whole documents, each on its own."""
    stride: Count | None = None
    """Stride of the windows in validation; length / 2 by default."""
    subword_sampling: Probability = 0.0
    """Probability of splitting a piece in two, anew in each epoch; 0.1 suits small corpora."""
    fill_in_middle: Probability = 0.0
    """Fraction of the documents, in parts of `length`, whose middle is moved to the end in
    training."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.fill_in_middle and (self.packing == "stream" or self.length <= ADDED):
            raise InputError(
                f"fill_in_middle = {self.fill_in_middle} rearranges documents, each by itself; set "
                f'packing = "documents", and a length above {ADDED}.'
            )
        if self.step > self.length:
            raise InputError(
                f"stride ({self.stride}) is above length ({self.length}): ids would be left out."
            )

    @property
    def step(self) -> int:
        """By how much windows advance in validation."""
        return self.stride if self.stride is not None else max(1, self.length // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageBatch(Batch):
    """Rows of text and what comes next. In the names of tensors: B rows, L positions.

    `indices` says where in the stream of ids each window begins.
    """

    inputs_BL: Tensor
    """Ids, then padding."""
    targets_BL: Tensor
    """The next id at each position, or `NO_TARGET`."""
    document_lengths: tuple[int, ...] | None
    """The lengths of the packed documents, which fill the one row, with padding as the last ones,
    none longer than a document may be; or None."""

    @property
    def shape(self) -> Shape:
        """The size of the batch."""
        rows, length = self.inputs_BL.shape
        return Shape(rows=rows, length=length, documents=self.document_lengths)


@dataclass(frozen=True, slots=True)
class PackedBatches:
    """Batches of text.

    `stream`: an epoch passes over the text once, from a newly drawn place, in windows in random
    order; what is left over at both ends is less than a window. `documents`: an epoch contains each
    document once, in random order; one over `length` is split. The whole text is sampled before an
    epoch, which keeps it in memory.
    """

    dataset: DocumentDataset
    config: PackConfig
    splits: Splits | None = None
    """Needed for subword sampling only."""
    middle: Middle | None = None
    """Needed if the middle of documents is learned last."""

    @property
    def fingerprint(self) -> str:
        """A hash of the dataset and the settings."""
        return fingerprint_of(self.dataset.content_hash, astuple(self.config))

    def draw(self, rng: np.random.Generator) -> Epoch[LanguageBatch]:
        """Choose the windows of the epoch and put them into batches.

        Raises InputError for a text that is shorter than one window.
        """
        length, num_ids = self.config.length, len(self.dataset.texts.ids)
        if self.config.packing == "stream" and num_ids <= length:
            raise InputError(
                f"{self.dataset.name} has {num_ids:,} tokens, too few for one window of length = "
                f"{length:,}; give more text or a smaller length."
            )
        probability = self.config.subword_sampling
        documents = sampled(self.dataset.texts, self.splits, probability, rng)
        if self.middle is not None:
            share = self.config.fill_in_middle
            documents = self.middle.rearranged(documents, length - ADDED, share, rng)
        dataset = replace(self.dataset, texts=documents)
        if self.config.packing == "stream":
            last = len(documents.ids) - 1  # which is only a target
            first = rng.integers(min(length, last - length + 1))
            ends = np.arange(first + length, last + 1, length)
            lengths = np.full(len(ends), length)
        else:
            _, ends, lengths = _advancing(documents, length, length)
        order = rng.permutation(len(ends))
        ends, lengths = ends[order], lengths[order]
        return self._epoch(dataset, ends - lengths, lengths, lengths)

    def fixed(self) -> Iterator[LanguageBatch]:
        """Yield the whole text, always the same way, each id predicted once.

        The first id of a sequence is not predicted; a sequence is the text or, with packed
        documents, each of them. For a figure per character, divide the sum of the losses by
        `dataset.num_chars`.
        """
        sequences = self.dataset.texts
        if self.config.packing == "stream":
            sequences = Ragged(sequences.ids, sequences.offsets[[0, -1]])
        firsts, ends, fresh = _advancing(sequences, self.config.length, self.config.step)
        starts = np.maximum(firsts, ends - self.config.length)
        return iter(self._epoch(self.dataset, starts, ends - starts, fresh))

    def _epoch(
        self, dataset: DocumentDataset, starts: Places, lengths: Places, fresh: Places
    ) -> Epoch[LanguageBatch]:
        """Batch windows in their order: the last `fresh[i]` targets of window i count."""
        length, rows = self.config.length, self.config.rows
        packed, room, total = self.config.packing == "documents", rows * length, int(lengths.sum())
        bounds = np.append(np.arange(0, len(starts), rows), len(starts))
        if packed:
            bounds = _filled(lengths, room)
        if len(bounds) <= 2:  # packed documents fill the same room in all batches, one alone less
            room = total
        count = len(bounds) - 1
        answered = in_answers(dataset.texts.ids, dataset.roles) if dataset.roles else None

        def make(number: int) -> LanguageBatch:
            chosen = slice(*bounds[number : number + 2])
            inputs = gather(dataset.texts.ids, starts[chosen], lengths[chosen])
            targets = _targets(dataset, answered, inputs, starts[chosen], fresh[chosen])
            documents, rest = None, 0
            if packed:
                rest = room - len(inputs.ids)
                filling = (min(length, rest - at) for at in range(0, rest, length))
                documents = (*lengths[chosen].tolist(), *filling)
                inputs, targets = (Ragged(r.ids, r.offsets[[0, -1]]) for r in (inputs, targets))
            return LanguageBatch(
                inputs_BL=padded(inputs, dataset.special.pad_id, after=rest),
                targets_BL=padded(targets, NO_TARGET, after=rest),
                document_lengths=documents,
                num_tokens=len(inputs.ids),
                num_targets=int((targets.ids != NO_TARGET).sum()),
                indices=starts[chosen],
            )

        return Epoch(
            count=count,
            examples=len(starts),
            padding=1.0 - total / max(1, count * room) if packed else 0.0,
            largest=(0,) if count else (),  # the last may have less room
            make=make,
        )


def _advancing(sequences: Ragged, length: int, step: int) -> tuple[Places, Places, Places]:
    """Return windows over each sequence: the first id, the window's end, and how much is new.

    Positions are those of inputs, of which a sequence has one less than ids.
    """
    of, before, after = windows_over(sequences.lengths - 1, length, step)
    firsts = sequences.offsets[of]
    return firsts, firsts + after, after - before


def _targets(
    dataset: DocumentDataset,
    answered: npt.NDArray[np.bool_] | None,
    inputs: Ragged,
    starts: Places,
    fresh: Places,
) -> Ragged:
    """Return the ids after the inputs, except those that do not count.

    Those are ids that other windows predict, that belong to no answer, or that begin a text. If one
    token begins and ends texts (GPT-2), only the last of a text counts.
    """
    texts, lengths = dataset.texts, inputs.lengths
    within = np.arange(len(inputs.ids)) - np.repeat(inputs.offsets[:-1], lengths)
    after = np.repeat(starts, lengths) + within + 2
    ids = texts.ids[after - 1].astype(np.int64)
    ends = texts.offsets[np.searchsorted(texts.offsets, after)] == after
    hidden = within < np.repeat(lengths - fresh, lengths)
    hidden |= (ids == dataset.special.bos_id) & ~ends
    if answered is not None:
        hidden |= ~answered[after - 1]
    return Ragged(np.where(hidden, NO_TARGET, ids), inputs.offsets)


def _filled(lengths: Places, room: int) -> Places:
    """Return where batches begin, if each takes as many of the windows, in order, as fit `room`."""
    ends = np.cumsum(lengths)
    bounds = [0]
    while bounds[-1] < len(ends):
        filled = ends[bounds[-1] - 1] if bounds[-1] else 0
        bounds.append(int(np.searchsorted(ends, filled + room, side="right")))
    return np.array(bounds)
