"""Norms of queries and keys, before their product (after Henry et al., 2020)."""

from typing import Literal

from torch import Tensor, nn

from dragoman.nn.norm import RMSNorm

QkNorm = bool | Literal["whole"]


class WholeNorm(RMSNorm):
    """RMSNorm of all heads as one vector (OLMo 2)."""

    def forward(self, x_BLHd: Tensor) -> Tensor:
        """Normalise `(..., H, d)` over its last two axes."""
        return super().forward(x_BLHd.flatten(-2)).view_as(x_BLHd)


def make_qk_norm(kind: QkNorm, num_heads: int, head_dim: int, *, eps: float) -> nn.Module:
    """Build the norm of queries or keys that a config names."""
    if kind == "whole":
        return WholeNorm(num_heads * head_dim, eps=eps)
    return RMSNorm(head_dim, eps=eps) if kind else nn.Identity()
