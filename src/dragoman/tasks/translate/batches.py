"""Batches of pairs: their tensors, their endless stream in training, their fixed row in validation.

In the names of tensors: B pairs, S source and T target positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig, Planned, Stream, ended, fingerprint_of, plan_batches
from dragoman.data.dataset import PairDataset, Ragged, SpecialIds, Splits, sampled
from dragoman.errors import InputError

__all__ = ["Batch", "Batches", "Splits", "evaluation_batches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Padded pairs as the model takes them."""

    src_BS: Tensor
    """Source ids and eos."""
    tgt_in_BT: Tensor
    """bos and target ids: what the decoder is given."""
    tgt_out_BT: Tensor
    """Target ids and eos: what it shall predict."""
    num_src_tokens: int
    """Source tokens without padding, with eos."""
    num_tgt_tokens: int
    """Target tokens without padding, with eos: the predictions that the loss sums over."""
    indices: npt.NDArray[np.int64]
    """Which pairs these are, counted over all corpora in order."""

    @property
    def num_targets(self) -> int:
        """Predictions that the loss sums over."""
        return self.num_tgt_tokens

    @property
    def num_tokens(self) -> int:
        """Tokens of both sides, without padding."""
        return self.num_src_tokens + self.num_tgt_tokens

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return replace(
            self,
            src_BS=self.src_BS.to(device, non_blocking=True),
            tgt_in_BT=self.tgt_in_BT.to(device, non_blocking=True),
            tgt_out_BT=self.tgt_out_BT.to(device, non_blocking=True),
        )


class Batches(Stream[Batch]):
    """Training batches of pairs without end.

    An epoch passes over each corpus as often as its weight says. ``splits`` (of source and target)
    are needed for subword sampling only: the whole epoch is sampled before its batches are
    planned, which keeps the budget exact.
    """

    def __init__(
        self,
        datasets: Sequence[PairDataset],
        config: BatchConfig,
        *,
        seed: int,
        splits: tuple[Splits, Splits] | None = None,
    ) -> None:
        self._datasets = datasets
        self._config = config
        self._splits = splits
        self._first = np.cumsum([0, *map(len, datasets)])
        self._usable = [np.nonzero(d.usable(config.max_length))[0] for d in datasets]
        if not any(map(len, self._usable)):
            names = ", ".join(dataset.name for dataset in datasets)
            raise InputError(
                f"There is nothing to train on: every pair of {names} is empty on a side or "
                f"longer than max_length = {config.max_length} tokens."
            )
        if len({dataset.special for dataset in datasets}) > 1:
            raise ValueError("the datasets were made with different tokenizers")
        if config.subword_sampling and splits is None:
            raise ValueError("subword sampling needs the splits of both tokenizers")
        super().__init__(seed=seed)

    @property
    def fingerprint(self) -> str:
        """A hash of the corpora, their weights and the settings."""
        content = [[dataset.content_hash, dataset.weight] for dataset in self._datasets]
        return fingerprint_of(content, astuple(self._config))

    def draw(self, rng: np.random.Generator) -> Planned[Batch]:
        """Choose the pairs of the epoch, sample their pieces, plan the batches, shuffle them."""
        rows = np.concatenate(
            [
                first + usable[_passes(len(usable), dataset.weight, rng)]
                for first, usable, dataset in zip(
                    self._first, self._usable, self._datasets, strict=False
                )
            ]
        )
        sides = self._sampled_sides(rng)
        src_lengths, tgt_lengths = (
            np.concatenate([ragged.lengths for ragged in side])[rows] + 1 for side in sides
        )
        plan = plan_batches(src_lengths, tgt_lengths, self._config.max_tokens, rng)
        order = rng.permutation(len(plan))
        return Planned(rows=rows, plan=plan, order=order, make=partial(self._batch, sides))

    def _sampled_sides(self, rng: np.random.Generator) -> tuple[list[Ragged], list[Ragged]]:
        """The ids of source and target of each corpus, sampled if that was asked for."""
        of_src, of_tgt = self._splits or (None, None)
        probability = self._config.subword_sampling
        return (
            [sampled(d.src, of_src, probability, rng) for d in self._datasets],
            [sampled(d.tgt, of_tgt, probability, rng) for d in self._datasets],
        )

    def _batch(
        self, sides: tuple[list[Ragged], list[Ragged]], rows: npt.NDArray[np.int64]
    ) -> Batch:
        """The pairs with the ascending numbers ``rows``, counted over all corpora."""
        bounds = np.searchsorted(rows, self._first)
        src, tgt = (
            Ragged.concatenate(
                [
                    ragged.take(rows[bounds[i] : bounds[i + 1]] - self._first[i])
                    for i, ragged in enumerate(side)
                    if bounds[i] < bounds[i + 1]
                ]
            )
            for side in sides
        )
        return _make_batch(src, tgt, self._datasets[0].special, rows)


def evaluation_batches(dataset: PairDataset, max_tokens: int) -> Iterator[Batch]:
    """All pairs of a corpus, each once, always in the same batches; nothing is left out."""
    rng = np.random.default_rng(0)
    plan = plan_batches(dataset.src.lengths + 1, dataset.tgt.lengths + 1, max_tokens, rng)
    for number in range(len(plan)):
        rows = plan[number]
        yield _make_batch(dataset.src.take(rows), dataset.tgt.take(rows), dataset.special, rows)


def _passes(count: int, weight: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Numbers below ``count``, each as often as the whole part of ``weight``, and a random share.

    The share is the fraction of ``weight``, rounded up or down by chance.
    """
    whole = int(weight)
    extra = int((weight - whole) * count + rng.random())
    return np.concatenate([np.tile(np.arange(count), whole), rng.permutation(count)[:extra]])


def _make_batch(
    src: Ragged, tgt: Ragged, special: SpecialIds, indices: npt.NDArray[np.int64]
) -> Batch:
    tgt_out_BT = ended(tgt, special)
    tgt_in_BT = tgt_out_BT.roll(1, dims=1)
    tgt_in_BT[tgt_in_BT == special.eos_id] = special.pad_id
    tgt_in_BT[:, 0] = special.bos_id
    return Batch(
        src_BS=ended(src, special),
        tgt_in_BT=tgt_in_BT,
        tgt_out_BT=tgt_out_BT,
        num_src_tokens=len(src.ids) + len(src),
        num_tgt_tokens=len(tgt.ids) + len(tgt),
        indices=indices,
    )
