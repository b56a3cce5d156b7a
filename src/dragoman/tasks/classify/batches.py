"""Batches of labelled texts: the whole text in, one label out."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import partial

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
    plan_epoch,
)
from dragoman.data.dataset import Ragged, Splits, sampled
from dragoman.data.labelled import LabelledDataset

__all__ = ["ClassBatch", "ClassBatches", "evaluation_batches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassBatch:
    """Padded texts and their labels. In the names of tensors: B texts, L positions."""

    ids_BL: Tensor
    """bos, piece ids, eos, padding."""
    labels_B: Tensor
    """The number of each text's label."""
    num_tokens: int
    """Tokens without padding, with bos and eos."""
    indices: npt.NDArray[np.int64]
    """Which examples of the dataset these are."""

    @property
    def num_targets(self) -> int:
        """The predictions that the loss sums over."""
        return len(self.indices)

    def to(self, device: torch.device | str) -> "ClassBatch":
        """The same batch on another device."""
        return replace(
            self,
            ids_BL=self.ids_BL.to(device, non_blocking=True),
            labels_B=self.labels_B.to(device, non_blocking=True),
        )


class ClassBatches(Stream[ClassBatch]):
    """Training batches of labelled texts without end, those of like length together.

    ``splits`` are needed for subword sampling only.
    """

    def __init__(
        self,
        dataset: LabelledDataset,
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

    def draw(self, rng: np.random.Generator) -> Planned[ClassBatch]:
        """Sample the pieces of all texts, plan the batches, shuffle them."""
        texts = sampled(self._dataset.texts, self._splits, self._config.subword_sampling, rng)
        texts = texts.cut(self._config.max_length)
        make = partial(_make_batch, self._dataset, texts)
        return plan_epoch(texts.lengths + 2, self._config.max_tokens, rng, make)


def evaluation_batches(dataset: LabelledDataset, config: BatchConfig) -> Iterator[ClassBatch]:
    """All texts, each once, always in the same batches; cut as in training."""
    texts = dataset.texts.cut(config.max_length)
    return fixed_batches(texts.lengths + 2, config.max_tokens, partial(_make_batch, dataset, texts))


def _make_batch(dataset: LabelledDataset, texts: Ragged, rows: npt.NDArray[np.int64]) -> ClassBatch:
    chosen = texts.take(rows)
    return ClassBatch(
        ids_BL=framed(chosen, dataset.special),
        labels_B=torch.from_numpy(dataset.targets[rows]),
        num_tokens=len(chosen.ids) + 2 * len(rows),
        indices=rows,
    )
