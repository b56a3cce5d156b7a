"""How large a batch is, and the random ids that estimates fill one with."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a batch is."""

    rows: int
    """Sentences, or texts."""
    src_length: int = 0
    """Source tokens of a row; 0 where there is no source."""
    length: int = 0
    """Target tokens of a row (encoder-decoder), or tokens."""
    targets: int | None = None
    """Predictions in the whole batch; one for each token or text by default."""
    documents: tuple[int, ...] | None = None
    """Lengths of the documents that each row is packed from, together `length`; None without."""

    @property
    def tokens(self) -> int:
        """Tokens of both sides."""
        return self.rows * (self.src_length + self.length)


def random_ids(
    size: tuple[int, int], vocab_size: int, pad_id: int, rng: np.random.Generator
) -> Tensor:
    """Draw ids other than padding."""
    ids = rng.integers(0, vocab_size - 1, size)
    return torch.from_numpy(ids + (ids >= pad_id))


def some_targets(ids_BL: Tensor, targets: int | None, nothing: int) -> Tensor:
    """Keep the first `targets` ids, all if None, and put `nothing` in the place of the others."""
    if targets is None:
        return ids_BL
    return ids_BL.where(torch.arange(ids_BL.numel()).view_as(ids_BL) < targets, nothing)
