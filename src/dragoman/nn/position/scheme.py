"""What a position scheme answers: a table, a rotation or a bias; each scheme makes one of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torch import Tensor, nn

if TYPE_CHECKING:  # rotary.py imports this module
    from dragoman.nn.position.rotary import Rotation

Positions = range | Tensor
"""Of the tokens of a call: consecutive ones as a range, others as a tensor `(L)` or `(B, L)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How a token's position is told to the model, as a value.

    A scheme overrides one of the three `make` methods. What it makes may be a module with
    parameters of its own, which are then trained, saved and counted.
    """

    def make_table(self, d_model: int) -> nn.Module | None:  # noqa: ARG002 (overridden)
        """Make a module that adds positions to embeddings: `(x_BLD, positions)` to `(B, L, D)`."""
        return None

    def make_rotation(self, head_dim: int) -> "Rotation | None":  # noqa: ARG002 (overridden)
        """Make what rotates the queries and keys of heads of this width."""
        return None

    def make_bias(self, num_heads: int, *, bidirectional: bool) -> nn.Module | None:  # noqa: ARG002 (overridden)
        """Make a module from distances `j - i`, `(T, S)`, to what is added to scores, `(H, T, S)`.

        Each stack has its own; `bidirectional` tells whether queries see later keys.
        """
        return None

    @property
    def changes_scores(self) -> bool:
        """Whether the scheme makes a bias."""
        return type(self).make_bias is not Scheme.make_bias

    @property
    def num_positions(self) -> int | None:
        """Number of positions that the scheme knows; None where nothing bounds them."""
        return None

    def check(self, d_model: int, head_dim: int) -> None:
        """Raise InputError for widths that the scheme cannot serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPositions(Scheme):
    """No positions: without a mask, self-attention then treats a sentence as a set."""

    kind: Literal["none"] = "none"
    """Which of the schemes this is."""


def end_of(positions: Positions) -> int:
    """Return the position after the last one; reading it from a tensor waits for a GPU."""
    if isinstance(positions, range):
        return positions.stop
    return int(positions.max()) + 1 if positions.numel() else 0
