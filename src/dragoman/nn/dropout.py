"""Dropout (Srivastava et al., 2014) whose random bits are cheap on a CPU."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 256  # a random byte decides each element on the CPU


class Dropout(nn.Module):
    """Set each element to 0 with probability `p` while training, scale the rest by `1 / (1 - p)`.

    On a CPU `p` is rounded to a multiple of 1/256 (0.1 becomes 0.1016) and the scale follows the
    rounded value, so the mean is kept exactly: one random byte for each element costs a seventh of
    the floating-point number that `torch.nn.functional.dropout` draws (and dropout was a quarter
    of a training step). Random numbers come from torch's default generator, whose state a
    checkpoint keeps.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"dropout must be at least 0 and below 1, not {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape; the identity outside training."""
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p, training=True)
        dropped: Tensor = _ByteDropout.apply(  # type: ignore[no-untyped-call]
            x, min(max(1, round(self.p * LEVELS)), LEVELS - 1)
        )
        return dropped

    def extra_repr(self) -> str:
        """Show the probability in the module's print-out."""
        return f"p={self.p}"


class _ByteDropout(torch.autograd.Function):
    """`y = x * kept * LEVELS / (LEVELS - threshold)` with `kept = (random byte >= threshold)`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:  # noqa: ANN401 (torch's context)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = (words.view(torch.uint8)[: x.numel()] >= threshold).view(torch.uint8).view(x.shape)
        ctx.save_for_backward(kept)
        ctx.scale = LEVELS / (LEVELS - threshold)
        return (x * kept.to(x.dtype)).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (kept,) = ctx.saved_tensors
        return (grads[0] * kept.to(grads[0].dtype)).mul_(ctx.scale), None
