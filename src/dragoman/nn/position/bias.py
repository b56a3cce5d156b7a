"""Position biases that are added to the scores and depend on the distance of key and query."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.nn.position.scheme import LearnedPositions, Scheme
from dragoman.ranges import Count, Range, check_ranges

NumBuckets = Annotated[
    int, Range(least=4, why="each of two directions has near distances and far ones")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeBias(Scheme):
    """A learned bias for each head and bucket of distances, as in T5."""

    kind: Literal["relative-bias"] = "relative-bias"
    num_buckets: NumBuckets = 32
    """Rows of the table; half of them for each direction if both are visible."""
    max_distance: int = 128
    """All distances from this one on share a bucket."""
    max_length: Count | None = None
    """Number of positions that have a learned vector besides (MPNet); none by default."""
    per_layer: bool = False
    """Whether each layer has a table of its own (umT5); by default all layers share one."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.max_distance <= self.num_buckets // 2:
            raise InputError(
                f"max_distance = {self.max_distance} is not above half of num_buckets = "
                f"{self.num_buckets}: so many distances have a bucket each"
            )

    def make_bias(self, num_heads: int, *, bidirectional: bool) -> "RelativeBiasTable":
        """Make a table."""
        return RelativeBiasTable(self, num_heads, bidirectional=bidirectional)

    def make_biases(self, num_layers: int, num_heads: int, *, causal: bool) -> nn.Module:
        """Make the table of a stack, or of each of its layers."""
        count = num_layers if self.per_layer else 1
        tables = [self.make_bias(num_heads, bidirectional=not causal) for _ in range(count)]
        return nn.ModuleList(tables) if self.per_layer else tables[0]

    def make_table(self, d_model: int) -> LearnedPositions | None:
        """Make the vectors of positions, if there are any."""
        return None if self.max_length is None else LearnedPositions(self.max_length, d_model)

    @property
    def num_positions(self) -> int | None:
        """Number of rows of that table."""
        return self.max_length


@dataclass(frozen=True, slots=True, kw_only=True)
class ALiBi(Scheme):
    """Scores decrease with distance, by a slope specific to each head."""

    kind: Literal["alibi"] = "alibi"

    def make_bias(self, num_heads: int, *, bidirectional: bool) -> "ALiBiBias":  # noqa: ARG002 (both directions have one formula)
        """Make the slopes of one stack."""
        return ALiBiBias(num_heads)


class RelativeBiasTable(nn.Module):
    """`bias[h, i, j] = table[bucket(j - i), h]` (Raffel et al., 2020, section 2.1).

    Half of the buckets cover one distance each; the other half grow with the logarithm of the
    distance up to `max_distance`. If a query sees both directions, one half of all buckets is for
    later keys and the other for earlier ones. Agrees with `T5Attention` of Hugging Face, including
    its float32 logarithm: on the border of two buckets, rounding decides.
    """

    def __init__(self, scheme: RelativeBias, num_heads: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.scheme = scheme
        self.bidirectional = bidirectional
        self.weight = nn.Parameter(torch.empty(scheme.num_buckets, num_heads))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, distance_TS: Tensor) -> Tensor:
        """Look up the bias of distances `j - i`: `(T, S)` to `(H, T, S)`."""
        return self.weight[self.buckets(distance_TS)].permute(2, 0, 1)

    def buckets(self, distance_TS: Tensor) -> Tensor:
        """Return the bucket of each distance."""
        num_buckets = self.scheme.num_buckets
        if self.bidirectional:
            num_buckets //= 2
            offset_TS = (distance_TS > 0) * num_buckets
            far_TS = distance_TS.abs()
        else:
            offset_TS = torch.zeros_like(distance_TS)
            far_TS = (-distance_TS).clamp(min=0)
        exact = num_buckets // 2
        share_TS = torch.log(far_TS.float().clamp(min=1) / exact) / math.log(
            self.scheme.max_distance / exact
        )
        coarse_TS = exact + (share_TS * (num_buckets - exact)).long()
        coarse_TS = coarse_TS.clamp(max=num_buckets - 1)
        return offset_TS + torch.where(far_TS < exact, far_TS, coarse_TS)


class ALiBiBias(nn.Module):
    """`bias[h, i, j] = -m_h |i - j|` with slopes `m_h = 2^(-8h/H)` (Press et al., 2022, section 3).

    If the number of heads is not a power of two, the slopes are, as in the paper's code, those of
    the next lower power, then every other one of the next higher power. No parameters: the slopes
    are computed.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.slopes = alibi_slopes(num_heads)

    def forward(self, distance_TS: Tensor) -> Tensor:
        """Compute the bias of distances `j - i`: `(T, S)` to `(H, T, S)`."""
        slopes_H = torch.tensor(self.slopes, dtype=torch.float32)
        slopes_H = slopes_H.to(distance_TS.device, non_blocking=True)
        return -slopes_H[:, None, None] * distance_TS.abs()


def alibi_slopes(num_heads: int) -> list[float]:
    """Return the slope of each head."""
    lower = 2 ** int(math.log2(num_heads))
    slopes = [2.0 ** (-8.0 * h / lower) for h in range(1, lower + 1)]
    between = [2.0 ** (-4.0 * h / lower) for h in range(1, 2 * lower + 1, 2)]
    return (slopes + between)[:num_heads]
