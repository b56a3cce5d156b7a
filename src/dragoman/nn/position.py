"""Where a token stands (paper, section 3.5)."""

import torch
from torch import Tensor, nn


def sinusoidal_table(
    num_positions: int, d_model: int, *, device: torch.device | None = None
) -> Tensor:
    """Compute `PE(pos, 2i) = sin(pos / 10000^(2i/D))`, `PE(pos, 2i+1) = cos(same)`, `(L, D)`.

    For each offset `k` there is one linear map `M_k` with `PE(pos + k) = M_k PE(pos)` for every
    `pos`: a rotation of each sine-cosine pair. The angles are computed in float64, since a float32
    product of a large position and a frequency has lost its fraction.
    """
    if d_model % 2:
        raise ValueError(f"sinusoidal positions need an even d_model, not {d_model}")
    positions_L1 = torch.arange(num_positions, dtype=torch.float64, device=device)[:, None]
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64, device=device) / d_model
    angles = positions_L1 / 10000.0**exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class SinusoidalPositions(nn.Module):
    """Add `PE(offset + l)` to the vector at place `l`; no parameter, not in the checkpoint.

    A length never seen before works: the table grows by doubling. It is kept in the dtype and on
    the device of the vectors, and computed anew where they change; it is no buffer, since moving
    a module would move it in float64, which some devices lack.
    """

    def __init__(self, d_model: int, *, initial_length: int = 256) -> None:
        super().__init__()
        self._table_LD = sinusoidal_table(initial_length, d_model)

    def forward(self, x_BLD: Tensor, offset: int = 0) -> Tensor:
        """Add the positions `offset ... offset + L - 1` to `(B, L, D)`."""
        end = offset + x_BLD.shape[1]
        table_LD = self._table_LD
        length = table_LD.shape[0]
        if end > length or (table_LD.dtype, table_LD.device) != (x_BLD.dtype, x_BLD.device):
            length = max(end, 2 * length) if end > length else length
            self._table_LD = table_LD = sinusoidal_table(length, x_BLD.shape[2]).to(x_BLD)
        return x_BLD + table_LD[offset:end]
