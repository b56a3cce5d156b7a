"""A bound that bends instead of cutting."""

import torch
from torch import Tensor

__all__ = ["soft_cap"]


def soft_cap(x: Tensor, cap: float | None) -> Tensor:
    """Compute `c tanh(x / c)`: near zero `x` itself, and nowhere further from it than `c`.

    For scores and for logits (Gemma 2, section 2). Without a cap it is `x`.
    """
    return x if cap is None else cap * torch.tanh(x / cap)
