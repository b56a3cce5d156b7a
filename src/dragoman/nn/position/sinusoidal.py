"""Sinusoidal positions, added to the embeddings (paper, section 3.5)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.nn.position.scheme import Positions, Scheme, end_of
from dragoman.ranges import Index

Layout = Literal["interleaved", "halves"]
Exponent = Literal["d/2", "d/2-1"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sinusoidal(Scheme):
    """Sines and cosines of the position, as in the paper."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Layout = "interleaved"
    """Sine and cosine of a frequency side by side, or all sines before all cosines (Marian)."""
    exponent: Exponent = "d/2"
    """The paper's `i / (D/2)`, or tensor2tensor's `i / (D/2 - 1)` (fairseq, M2M100)."""
    first: Index = 0
    """Position of the first token; fairseq counts from pad_id + 1."""

    def make_table(self, d_model: int) -> "SinusoidalPositions":
        """Make the module that adds positions to vectors of this width."""
        return SinusoidalPositions(d_model, self)

    def check(self, d_model: int, head_dim: int) -> None:  # noqa: ARG002 (the scheme's form)
        """Raise InputError for an odd d_model."""
        if d_model % 2:
            raise InputError(f"d_model = {d_model} is odd; sinusoidal positions need an even one")


def sinusoidal_table(
    num_positions: int,
    d_model: int,
    *,
    layout: Layout = "interleaved",
    exponent: Exponent = "d/2",
) -> Tensor:
    """Compute `PE(pos, 2i) = sin(pos / 10000^(2i/D))`, `PE(pos, 2i+1) = cos(same)`, `(L, D)`.

    For each offset `k` there is one linear map `M_k` with `PE(pos + k) = M_k PE(pos)` for every
    `pos`: a rotation of each sine-cosine pair. The angles are computed in float64, since a float32
    product of a large position and a frequency loses its fraction. The other layout is a
    permutation of the columns; the other exponent, `i / (D/2 - 1)`, makes the last frequency
    exactly 1/10000.
    """
    if d_model % 2:
        raise ValueError(f"sinusoidal positions need an even d_model, not {d_model}")
    positions_L1 = torch.arange(num_positions, dtype=torch.float64)[:, None]
    steps = d_model / 2 if exponent == "d/2" else max(d_model / 2 - 1, 1)
    exponents = torch.arange(d_model // 2, dtype=torch.float64) / steps
    angles = positions_L1 / 10000.0**exponents
    if layout == "halves":
        return torch.cat([angles.sin(), angles.cos()], dim=-1)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class SinusoidalPositions(nn.Module):
    """Add `PE(position)` to each vector; no parameter, not in the checkpoint.

    Any length works: the table grows by doubling. It has the dtype and device of the vectors and is
    recomputed when they change; it is not a buffer, because moving a module would move it in
    float64, which some devices lack.
    """

    def __init__(
        self, d_model: int, scheme: Sinusoidal | None = None, *, initial_length: int = 256
    ) -> None:
        super().__init__()
        self.scheme = scheme or Sinusoidal()
        self._initial_length = initial_length
        self._table_LD = torch.empty(0, d_model)  # made on first use

    def forward(self, x_BLD: Tensor, positions: Positions | None = None) -> Tensor:
        """Add the vectors of the positions, by default `0 ... L - 1`, to `(B, L, D)`."""
        if positions is None:
            positions = range(x_BLD.shape[1])
        first = self.scheme.first
        end = first + end_of(positions)
        table_LD = self._table_LD
        length = table_LD.shape[0]
        if end > length or (table_LD.dtype, table_LD.device) != (x_BLD.dtype, x_BLD.device):
            if end > length:
                length = max(end, 2 * length, self._initial_length)
            self._table_LD = table_LD = self._make(length, x_BLD.shape[2]).to(x_BLD)
        if isinstance(positions, range):
            return x_BLD + table_LD[first + positions.start : end]
        return x_BLD + table_LD[first + positions]

    def _make(self, length: int, d_model: int) -> Tensor:
        layout, exponent = self.scheme.layout, self.scheme.exponent
        return sinusoidal_table(length, d_model, layout=layout, exponent=exponent)
