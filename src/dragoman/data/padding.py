"""Sequences of ids as one tensor: enclosed by special ids, and padded to one width."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.data.dataset import Ragged, SpecialIds

NO_TARGET = -1
"""Marks positions without a prediction in targets; the padding id may be a target (GPT-2)."""


def padded(ragged: Ragged, padding: int, *, before: int = 0, after: int = 0) -> Tensor:
    """Pad the sequences with `padding` to one width; shape (B, L).

    At least `before` positions precede each sequence and `after` follow it.
    """
    lengths = ragged.lengths
    within = np.arange(lengths.max(initial=0) + before + after) - before
    ids_BL = np.full((len(ragged), len(within)), padding, dtype=np.int64)
    ids_BL[(within >= 0) & (within < lengths[:, None])] = ragged.ids
    return torch.from_numpy(ids_BL)


def enclosed(ragged: Ragged, padding: int, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """Return each sequence between the same ids, then padding; shape (B, L)."""
    ids_BL = padded(ragged, padding, before=len(before), after=len(after))
    ids_BL[:, : len(before)] = torch.tensor(before)
    for place, id_ in enumerate(after, start=len(before)):
        ids_BL[np.arange(len(ragged)), ragged.lengths + place] = id_
    return ids_BL


def framed(ragged: Ragged, special: SpecialIds) -> Tensor:
    """Return each sequence between bos and eos, then padding; shape (B, L).

    An encoder whose first position is used as its output has bos there, which means nothing by
    itself: the `[CLS]` of Devlin et al. (2019, section 3), the `<s>` of RoBERTa.
    """
    return enclosed(ragged, special.pad_id, (special.bos_id,), (special.eos_id,))
