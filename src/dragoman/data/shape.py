"""The size of a batch, and the random ids that fill one for estimates."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size of a batch."""

    rows: int
    """Number of sentences or texts."""
    src_length: int = 0
    """Source tokens per row; 0 if there is no source."""
    length: int = 0
    """Target tokens per row (encoder-decoder), or tokens."""
    targets: int | None = None
    """Predictions in the whole batch; one per token or text by default."""
    documents: tuple[int, ...] | None = None
    """Lengths of the documents packed into each row, `length` in all; None if not packed."""

    @property
    def tokens(self) -> int:
        """Number of tokens of both sides."""
        return self.rows * (self.src_length + self.length)


def random_ids(
    size: tuple[int, int], vocab_size: int, pad_id: int, rng: np.random.Generator
) -> Tensor:
    """Draw ids other than padding."""
    ids = rng.integers(0, vocab_size - 1, size)
    return torch.from_numpy(ids + (ids >= pad_id))


def some_targets(ids_BL: Tensor, targets: int | None, nothing: int) -> Tensor:
    """Keep the first `targets` ids, all if None, and replace the others by `nothing`."""
    if targets is None:
        return ids_BL
    return ids_BL.where(torch.arange(ids_BL.numel()).view_as(ids_BL) < targets, nothing)
