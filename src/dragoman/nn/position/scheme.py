"""The interface of position schemes, which make a table, a rotation or a bias.

Also the two simplest schemes: none, and a learned vector per position (Gehring et al., 2017).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.nn.dot_product import Bias
from dragoman.nn.patterns.pattern import Pattern
from dragoman.ranges import Count, check_ranges

Pairing = Literal["halves", "adjacent"]
Positions = range | Tensor
"""Positions of a call's tokens: a range if consecutive, otherwise a tensor `(L)` or `(B, L)`."""


def end_of(positions: Positions) -> int:
    """Return the position after the last one; for a tensor this waits for the GPU."""
    if isinstance(positions, range):
        return positions.stop
    return int(positions.max()) + 1 if positions.numel() else 0


class Angles(NamedTuple):
    """Cosine and sine of each position and rotated pair, `(L, d/2)` or `(B, 1, L, d/2)`."""

    cos_Lp: Tensor
    sin_Lp: Tensor
    pairing: Pairing
    local: "Angles | None" = None
    """Those of layers with a window, if they differ."""
    before_norm: bool = False
    """Whether queries and keys are rotated before they are normalized."""
    unrotated: tuple[int, ...] = ()
    """Layers without a rotation."""


def rotate(x_BHLd: Tensor, angles: Angles) -> Tensor:
    """Rotate each pair `(a, b)` of `(B, H, L, d)` to `(a cos - b sin, b cos + a sin)`.

    With angles for fewer pairs, only the first components are rotated.
    """
    cos_Lp, sin_Lp, pairing, *_ = angles
    if (width := 2 * cos_Lp.shape[-1]) < x_BHLd.shape[-1]:
        return torch.cat([rotate(x_BHLd[..., :width], angles), x_BHLd[..., width:]], dim=-1)
    if pairing == "halves":
        a_BHLp, b_BHLp = x_BHLd.chunk(2, dim=-1)
    else:
        a_BHLp, b_BHLp = x_BHLd.unflatten(-1, (-1, 2)).unbind(-1)
    turned = (a_BHLp * cos_Lp - b_BHLp * sin_Lp, b_BHLp * cos_Lp + a_BHLp * sin_Lp)
    if pairing == "halves":
        return torch.cat(turned, dim=-1)
    return torch.stack(turned, dim=-1).flatten(-2)


class Rotation(Protocol):
    """The angles by which queries and keys of one width are rotated."""

    @property
    def follows_length(self) -> bool:
        """Whether the angle of a position depends on the last position of a call."""

    @property
    def changes_at(self) -> int | None:
        """The length beyond which the angles of all positions are others (LongRoPE), if any."""

    def angles(self, positions: Positions, like: Tensor, ahead: int = 0) -> Angles:
        """Return the angles of positions, in the dtype and on the device of `like`.

        The text is known to go on for `ahead` tokens, which the call does not read.
        """


class PositionInfo(NamedTuple):
    """Position information for attention, made once per call and passed to all layers."""

    angles: Angles | None = None
    """Rotation of queries and keys."""
    bias: Bias | None = None
    """Bias on the scores; a `ModuleList` has one for each layer."""
    pack: Callable[[Pattern], Pattern] | None = None
    """Confines a pattern to the documents that are packed into each row."""

    def of_layer(self, index: int) -> "PositionInfo":
        """Return the information for one layer, which may have no rotation or a bias of its own."""
        angles = None if self.angles and index in self.angles.unrotated else self.angles
        bias = self.bias[index] if isinstance(self.bias, nn.ModuleList) else self.bias
        return self._replace(angles=angles, bias=bias)

    def place(self, x_BLHd: Tensor, norm: Callable[[Tensor], Tensor], *, local: bool) -> Tensor:
        """Return normalized and rotated queries or keys, `(B, H, L, d)`, in the scheme's order."""
        angles = self.angles
        if angles is None:
            return norm(x_BLHd).transpose(1, 2)
        if local and angles.local is not None:
            angles = angles.local
        if angles.before_norm:
            return norm(rotate(x_BLHd.transpose(1, 2), angles))
        return rotate(norm(x_BLHd).transpose(1, 2), angles)

    def confine(self, pattern: Pattern) -> Pattern:
        """Return the pattern, confined to the documents of the rows if they are packed."""
        return pattern if self.pack is None else self.pack(pattern)


NO_POSITIONS = PositionInfo()
"""No rotation, no bias, one document: for cross-attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How the model receives the positions of tokens, as a value.

    A scheme overrides one of the three `make` methods. It may make a module with parameters, which
    are then trained, saved and counted.
    """

    def __post_init__(self) -> None:
        check_ranges(self)

    def make_table(self, d_model: int) -> nn.Module | None:  # noqa: ARG002 (overridden)
        """Make a module that adds positions to embeddings: `(x_BLD, positions)` to `(B, L, D)`."""
        return None

    def make_rotation(self, head_dim: int) -> Rotation | None:  # noqa: ARG002 (overridden)
        """Make the rotation of queries and keys for heads of this width."""
        return None

    def make_bias(self, num_heads: int, *, bidirectional: bool) -> nn.Module | None:  # noqa: ARG002 (overridden)
        """Make a module from distances `j - i`, `(T, S)`, to score biases, `(H, T, S)`.

        Each stack has its own; `bidirectional` says whether queries see later keys.
        """
        return None

    def make_biases(self, num_layers: int, num_heads: int, *, causal: bool) -> nn.Module | None:  # noqa: ARG002 (overridden)
        """Make the bias of a stack: a module for all layers, or a `ModuleList` of one for each."""
        return self.make_bias(num_heads, bidirectional=not causal)

    @property
    def changes_scores(self) -> bool:
        """Whether the scheme makes a bias."""
        return type(self).make_bias is not Scheme.make_bias

    @property
    def num_positions(self) -> int | None:
        """Number of positions that the scheme supports; None if unlimited."""
        return None

    def check(self, d_model: int, head_dim: int) -> None:
        """Raise InputError for widths that the scheme does not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPositions(Scheme):
    """No positions: without a mask, self-attention then treats a sentence as a set."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned(Scheme):
    """A learned vector for each of the first `max_length` positions."""

    kind: Literal["learned"] = "learned"
    max_length: Count = 1024
    """Number of positions that have a vector."""

    def make_table(self, d_model: int) -> "LearnedPositions":
        """Make the module that adds positions to vectors of this width."""
        return LearnedPositions(self.max_length, d_model)

    @property
    def num_positions(self) -> int:
        """Number of rows of the table."""
        return self.max_length


class LearnedPositions(nn.Module):
    """Add row `position` of a learned matrix to each vector."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x_BLD: Tensor, positions: Positions | None = None) -> Tensor:
        """Add the rows of the positions, by default `0 ... L - 1`, to `(B, L, D)`.

        Raises InputError if a position has no row.
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
