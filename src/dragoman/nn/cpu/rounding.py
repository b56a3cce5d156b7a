"""Rounding to 8 bits, `x = scale * q`, with one scale for each row."""

import torch
from torch import Tensor

LARGEST = 127
"""The largest integer: symmetric, so that 0 stays 0."""


def quantized(x_MI: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of `x` as integers and the scale of each, `(M, 1)`."""
    largest_M1 = x_MI.abs().amax(dim=1, keepdim=True)
    # A quotient of tensors is rounded once; torch computes `127 / x` as a product with `1 / x`.
    factor_M1 = torch.where(largest_M1 > 0, torch.full_like(largest_M1, LARGEST) / largest_M1, 0.0)
    return (x_MI * factor_M1).round().to(torch.int8), largest_M1 / LARGEST
