"""Batches of pairs: drawn anew for each epoch in training, always the same in validation.

Axes in tensor names: B pairs, S source positions and T target positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.aligner import NONE
from dragoman.data.batches import Batch, BatchConfig, Epoch, plan_batches, shuffled
from dragoman.data.dataset import PairDataset, Ragged, SpecialIds, Splits, fingerprint_of, sampled
from dragoman.data.padding import enclosed
from dragoman.data.shape import Shape
from dragoman.errors import InputError
from dragoman.tasks.translate.placing import Placeholders
from dragoman.text.tokenizer import Frame

Lengths = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairBatch(Batch):
    """Padded pairs as model input; `indices` numbers them across all corpora in order."""

    src_BS: Tensor
    """Source ids and eos, or the source ids in the frame of another library's model."""
    tgt_in_BT: Tensor
    """Decoder input: bos and the target ids."""
    tgt_out_BT: Tensor
    """Expected output: the target ids and eos, or the target ids in their frame."""
    links_BT: Tensor | None = None
    """Source position that each target token translates, or -1; None if links are unknown."""

    @property
    def shape(self) -> Shape:
        """The shape of the batch."""
        rows, src_length = self.src_BS.shape
        return Shape(rows=rows, src_length=src_length, length=self.tgt_in_BT.shape[1])

    def source_lengths(self, pad_id: int, limit: int) -> list[int]:
        """Return the lengths of the sources that validation translates: indices below `limit`."""
        lengths_B = (self.src_BS != pad_id).sum(1) - 1  # without eos
        return [int(length) for length in lengths_B[torch.from_numpy(self.indices < limit)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """The ids before and after the source and the target of a pair."""

    src: Frame
    tgt: Frame
    """All of these ids are learned, including the prefix that decoding forces."""
    start: int
    """The first id that the decoder reads."""

    @classmethod
    def plain(cls, special: SpecialIds, tags: tuple[int, ...] = ()) -> "Framing":
        """Return the framing of our own models: eos after each side, tags before the source."""
        end = (special.eos_id,)
        return cls(src=Frame(tags, end), tgt=Frame((), end), start=special.bos_id)

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of ids around a source, and around a target."""
        return len(self.src.before + self.src.after), len(self.tgt.before + self.tgt.after)


@dataclass(frozen=True, slots=True)
class PairBatches:
    """Batches of the pairs of one or more corpora.

    A training epoch passes over each corpus as often as its weight says. The whole epoch is sampled
    before its batches are planned, which keeps the token budget exact.
    """

    datasets: Sequence[PairDataset]
    config: BatchConfig
    splits: tuple[Splits, Splits] | None = None
    """Splits of source and target; needed only for subword sampling."""
    framing: Framing | None = None
    """The framing of another library's model."""
    placeholders: Placeholders | None = None
    """Inserts placeholders into pairs."""

    @property
    def fingerprint(self) -> str:
        """A hash of the corpora, their weights and the settings that affect drawing."""
        content = [[each.content_hash, each.weight, *each.tags] for each in self.datasets]
        framing = () if self.framing is None else (astuple(self.framing),)
        drawn = [getattr(self.config, field.name) for field in fields(BatchConfig)]
        placed = () if self.placeholders is None else (self.placeholders.share,)
        return fingerprint_of(content, drawn, *framing, *placed)

    def draw(self, rng: np.random.Generator) -> Epoch[PairBatch]:
        """Choose the pairs of an epoch, sample their pieces, plan the batches and shuffle them.

        Raises InputError if no pair is usable.
        """
        usable = [np.nonzero(d.usable(self.config.max_length))[0] for d in self.datasets]
        if not any(map(len, usable)):
            names = ", ".join(dataset.name for dataset in self.datasets)
            raise InputError(
                f"There is nothing to train on: every pair of {names} is empty on a side or "
                f"longer than max_length = {self.config.max_length} tokens."
            )
        first = np.cumsum([0, *map(len, self.datasets)])
        rows = np.concatenate(
            [
                start + chosen[_passes(len(chosen), dataset.weight, rng)]
                for start, chosen, dataset in zip(first, usable, self.datasets, strict=False)
            ]
        )
        sides = self._sampled_sides(rng)
        lengths = (np.concatenate([ragged.lengths for ragged in side])[rows] for side in sides[:2])
        plan = plan_batches(*self._framed(*lengths), self.config.max_tokens, rng)

        def collate(chosen: npt.NDArray[np.int64]) -> PairBatch:
            bounds = np.searchsorted(chosen, first)  # pairs of corpus i begin at `first[i]`
            taken = (
                Ragged.concatenate(
                    [
                        ragged.take(chosen[bounds[i] : bounds[i + 1]] - first[i])
                        for i, ragged in enumerate(side)
                        if bounds[i] < bounds[i + 1]
                    ]
                )
                for side in sides
            )
            return self._make_batch(chosen, *taken)

        return shuffled(plan, rows, rng, collate)

    def fixed(self) -> Iterator[PairBatch]:
        """Yield all pairs of the only corpus, each once, always in the same batches."""
        (dataset,) = self.datasets
        lengths = self._framed(dataset.src.lengths, dataset.tgt.lengths)
        plan = plan_batches(*lengths, self.config.max_tokens, np.random.default_rng(0))
        for number in range(len(plan)):
            rows = plan[number]
            sides = (side.take(rows) for side in (dataset.src, dataset.tgt, dataset.links) if side)
            yield self._make_batch(rows, *sides)

    def _framed(self, src: Lengths, tgt: Lengths) -> tuple[Lengths, Lengths]:
        of_src, of_tgt = self._framing.sizes
        return src + of_src, tgt + of_tgt

    @property
    def _framing(self) -> Framing:
        first = self.datasets[0]
        return self.framing or Framing.plain(first.special, first.tags)

    def _make_batch(
        self, indices: npt.NDArray[np.int64], src: Ragged, tgt: Ragged, links: Ragged | None = None
    ) -> PairBatch:
        framing, pad_id = self._framing, self.datasets[0].special.pad_id
        tgt_out_BT = enclosed(tgt, pad_id, framing.tgt.before, framing.tgt.after)
        tgt_in_BT = tgt_out_BT.roll(1, dims=1)
        tgt_in_BT[tgt_out_BT == pad_id] = pad_id
        tgt_in_BT[:, 0] = framing.start
        of_src, of_tgt = framing.sizes
        num_targets = len(tgt.ids) + len(tgt) * of_tgt
        src_BS = enclosed(src, pad_id, framing.src.before, framing.src.after)
        if tags := [dataset.tags for dataset in self.datasets if dataset.tags]:
            ends = np.cumsum([*map(len, self.datasets)])
            of_B = np.searchsorted(ends, indices, side="right")
            src_BS[:, : len(tags[0])] = torch.tensor(tags)[of_B]
        return PairBatch(
            src_BS=src_BS,
            tgt_in_BT=tgt_in_BT,
            tgt_out_BT=tgt_out_BT,
            num_targets=num_targets,
            num_tokens=len(src.ids) + len(src) * of_src + num_targets,
            indices=indices,
            links_BT=None if links is None else self._framed_links(links),
        )

    def _framed_links(self, links: Ragged) -> Tensor:
        before, after = self._framing.tgt.before, self._framing.tgt.after
        links_BT = enclosed(links, NONE, [NONE] * len(before), [NONE] * len(after))
        return links_BT.where(links_BT == NONE, links_BT + len(self._framing.src.before))

    def _sampled_sides(self, rng: np.random.Generator) -> list[list[Ragged]]:
        """Return the ids of both sides of each corpus, sampled if configured, and known links."""
        of_src, of_tgt = self.splits or (None, None)
        probability = self.config.subword_sampling
        datasets = self.datasets
        if self.placeholders is not None:
            datasets = [self.placeholders.placed(each, rng) for each in datasets]
        links = [d.links for d in datasets if d.links is not None]
        return [
            [sampled(d.src, of_src, probability, rng) for d in datasets],
            [sampled(d.tgt, of_tgt, probability, rng) for d in datasets],
            *([links] if links else []),
        ]


def _passes(count: int, weight: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return each number below `count` as often as `int(weight)`, and a random share once more.

    The share is the fractional part of `weight`, rounded up or down at random.
    """
    whole = int(weight)
    extra = int((weight - whole) * count + rng.random())
    return np.concatenate([np.tile(np.arange(count), whole), rng.permutation(count)[:extra]])
