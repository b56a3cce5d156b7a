"""Batches of labelled texts: the whole text in, one label out."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import Batch, BatchConfig, SequenceBatches, framed
from dragoman.data.dataset import Ragged, Splits
from dragoman.data.labelled import LabelledDataset


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassBatch(Batch):
    """Padded texts and their labels. In the names of tensors: B texts, L positions."""

    ids_BL: Tensor
    """bos, piece ids, eos, padding."""
    labels_B: Tensor
    """The number of each text's label."""


def class_batches(
    dataset: LabelledDataset, config: BatchConfig, splits: Splits | None = None
) -> SequenceBatches[ClassBatch]:
    """Return the batches of labelled texts; texts over the limit are cut."""
    return SequenceBatches(
        sequences=dataset.texts,
        examples=partial(_Texts, dataset, config.max_length),
        content_hash=dataset.content_hash,
        config=config,
        splits=splits,
    )


class _Texts:
    """Texts, perhaps sampled, cut to the limit."""

    def __init__(self, dataset: LabelledDataset, limit: int, texts: Ragged) -> None:
        self._dataset = dataset
        self._texts = texts.cut(limit)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each text, with bos and eos."""
        return self._texts.lengths + 2

    def collate(self, rows: npt.NDArray[np.int64]) -> ClassBatch:
        """The texts with these numbers as tensors."""
        chosen = self._texts.take(rows)
        return ClassBatch(
            ids_BL=framed(chosen, self._dataset.special),
            labels_B=torch.from_numpy(self._dataset.targets[rows]),
            num_tokens=len(chosen.ids) + 2 * len(rows),
            num_targets=len(rows),
            indices=rows,
        )
