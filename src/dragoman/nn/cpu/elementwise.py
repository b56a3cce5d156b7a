"""Dropout with cheap random bits on a CPU, and activations that round the same at any size."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.nn.cpu.native import native_for

LEVELS = 256  # a random byte decides each element on the CPU


class Dropout(nn.Module):
    """Set each element to 0 with probability `p` in training, scale the rest by `1 / (1 - p)`.

    Srivastava et al. (2014).

    On a CPU `p` is rounded to a multiple of 1/256 (0.1 becomes 0.1016) and the scale uses the
    rounded value, so the mean is exact: one random byte per element costs a seventh of the
    floating-point number that `torch.nn.functional.dropout` draws (and dropout was a quarter of a
    training step). Random numbers come from torch's default generator, whose state a checkpoint
    saves.
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
        """Show the probability in the module's repr."""
        return f"p={self.p}"


class _ByteDropout(torch.autograd.Function):
    """`y = x * (random byte >= threshold) * LEVELS / (LEVELS - threshold)`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:  # noqa: ANN401 (torch's context)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        random, ctx.threshold = words.view(torch.uint8)[: x.numel()], threshold
        ctx.save_for_backward(random)
        return _drop(x, random, threshold)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (random,) = ctx.saved_tensors
        return _drop(grads[0], random, ctx.threshold), None


def _drop(x: Tensor, random: Tensor, threshold: int) -> Tensor:
    """Drop in one pass over memory; without compiled code, the same bits in four."""
    x, scale = x.contiguous(), LEVELS / (LEVELS - threshold)
    functions = native_for(x, torch.float32, torch.bfloat16)
    if functions is None:
        return (x * (random >= threshold).to(x.dtype).view(x.shape)).mul_(scale)
    out = torch.empty_like(x)
    where = (x.data_ptr(), random.data_ptr(), out.data_ptr(), x.numel())
    functions.drop(*where, threshold, scale, x.dtype is torch.bfloat16)
    return out


def sigmoid(x: Tensor) -> Tensor:
    """Compute `1 / (1 + exp(-x))`.

    On a CPU the fused operator computes blocks and the remainder of a thread in different ways, so
    an element's last digit depends on the number of elements. The separate operators of the formula
    avoid that. Training uses the fused operators, whose gradients need less memory.
    """
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return F.sigmoid(x)
    return 1.0 / (1.0 + (-x).exp())


def silu(x: Tensor) -> Tensor:
    """Compute `x sigmoid(x)` (Elfwing et al., 2018)."""
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return F.silu(x)
    return x * sigmoid(x)


def gelu_tanh(x: Tensor) -> Tensor:
    """`x sigmoid(2 u)`, `u = sqrt(2 / pi) (x + 0.044715 x^3)` (Hendrycks and Gimpel, 2016)."""
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return F.gelu(x, approximate="tanh")
    return x * sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x)))
