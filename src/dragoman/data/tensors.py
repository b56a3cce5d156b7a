"""Sequences of ids as padded tensors. In the names of tensors: B sequences, L positions."""

import numpy as np
import torch
from torch import Tensor

from dragoman.data.dataset import Ragged, SpecialIds

__all__ = ["ended", "framed", "padded"]


def padded(ragged: Ragged, padding: int, *, before: int = 0, after: int = 0) -> Tensor:
    """The sequences with ``padding`` around them to one width; shape (B, L).

    At least ``before`` places come before each sequence and ``after`` after it.
    """
    lengths = ragged.lengths
    within = np.arange(lengths.max(initial=0) + before + after) - before
    ids_BL = np.full((len(ragged), len(within)), padding, dtype=np.int64)
    ids_BL[(within >= 0) & (within < lengths[:, None])] = ragged.ids
    return torch.from_numpy(ids_BL)


def ended(ragged: Ragged, special: SpecialIds) -> Tensor:
    """Each sequence, eos, then padding; shape (B, L)."""
    ids_BL = padded(ragged, special.pad_id, after=1)
    ids_BL[np.arange(len(ragged)), ragged.lengths] = special.eos_id
    return ids_BL


def framed(ragged: Ragged, special: SpecialIds) -> Tensor:
    """Each sequence between bos and eos, then padding; shape (B, L).

    An encoder that is read off at its first position has bos there, which says nothing by itself:
    the ``[CLS]`` of Devlin et al. (2019, section 3), the ``<s>`` of RoBERTa.
    """
    ids_BL = padded(ragged, special.pad_id, before=1, after=1)
    ids_BL[:, 0] = special.bos_id
    ids_BL[np.arange(len(ragged)), ragged.lengths + 1] = special.eos_id
    return ids_BL
