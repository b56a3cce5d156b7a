"""Learned positions, added to the embeddings (Gehring et al., 2017)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.nn.position.scheme import Positions, Scheme, end_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned(Scheme):
    """A learned vector for each position; none beyond the last one."""

    kind: Literal["learned"] = "learned"
    """Which of the schemes this is."""
    max_length: int = 1024
    """Positions that have a vector."""

    def __post_init__(self) -> None:
        """Raise InputError for a table without rows."""
        if self.max_length < 1:
            raise InputError(f"max_length = {self.max_length} is not at least 1")

    def make_table(self, d_model: int) -> "LearnedPositions":
        """Make what adds the positions to vectors of this width."""
        return LearnedPositions(self.max_length, d_model)

    @property
    def num_positions(self) -> int:
        """As many as the table has rows."""
        return self.max_length


class LearnedPositions(nn.Module):
    """Add row `position` of a learned matrix to each vector."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x_BLD: Tensor, positions: Positions | None = None) -> Tensor:
        """Add to `(B, L, D)` the rows of its positions; unless given, `0 ... L - 1`.

        Raises InputError for a position that has no row.
        """
        if positions is None:
            positions = range(x_BLD.shape[1])
        end = end_of(positions)
        if end > len(self.weight):
            raise InputError(
                f"the text has {end:,} tokens, but the model has learned positions for "
                f"{len(self.weight):,} only; cut the text, or train with rotary positions or ALiBi"
            )
        if isinstance(positions, range):
            return x_BLD + self.weight[positions.start : end].to(x_BLD.dtype)
        return x_BLD + self.weight[positions].to(x_BLD.dtype)
