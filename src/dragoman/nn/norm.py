"""Normalisation of each token's vector.

A norm returns the dtype of its input. On a GPU, autocast computes norms in float32; without a cast
back, the residual stream of a bfloat16 model and its output layer would run in float32.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NormName = Literal["layer", "rms"]


class LayerNorm(nn.Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last axis (Ba et al., 2016).

    The variance is the biased one (divided by `D`, not `D - 1`) and `eps` is inside the root:
    if either is changed, weights cannot be exchanged with other libraries.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Normalise each vector of `(..., D)`."""
        normed_BLD = F.layer_norm(x_BLD, self.weight.shape, self.weight, self.bias, self.eps)
        return normed_BLD.to(x_BLD.dtype)


class RMSNorm(nn.Module):
    """`x / sqrt(mean(x^2) + eps) * weight` over the last axis (Zhang and Sennrich, 2019)."""

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Normalise each vector of `(..., D)`."""
        weight = self.weight.to(x_BLD.dtype)
        return F.rms_norm(x_BLD, self.weight.shape, weight, self.eps).to(x_BLD.dtype)


def make_norm(name: NormName, d_model: int, *, eps: float, bias: bool) -> LayerNorm | RMSNorm:
    """Build the norm that a config names; `bias` does not apply to RMSNorm."""
    if name == "rms":
        return RMSNorm(d_model, eps=eps)
    return LayerNorm(d_model, eps=eps, bias=bias)
