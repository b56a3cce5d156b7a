"""The position-wise feed-forward network (paper, section 3.3)."""

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.init import init_linear
from dragoman.nn.products import Linear

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "sigmoid"]


def _sigmoid(x: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`.

    A CPU computes the fused operator in blocks and what a thread has left over in another way, so
    an element's last digit depends on how many elements there are; of the formula's parts, each
    by itself, it does not. Training takes the fused operators, whose gradients need less memory.
    """
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return F.sigmoid(x)
    return 1.0 / (1.0 + (-x).exp())


def _silu(x: Tensor) -> Tensor:
    """`x sigmoid(x)` (Elfwing et al., 2018)."""
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return F.silu(x)
    return x * _sigmoid(x)


def _gelu_tanh(x: Tensor) -> Tensor:
    """`x sigmoid(2 u)`, `u = sqrt(2 / pi) (x + 0.044715 x^3)` (Hendrycks and Gimpel, 2016)."""
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return F.gelu(x, approximate="tanh")
    return x * _sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x)))


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
    "sigmoid": _sigmoid,
}


class FeedForward(nn.Module):
    """`act(x W1 + b1) W2 + b2`; gated: `(act(x W1 + b1) * (x W3 + b3)) W2 + b2`.

    With ReLU it is the paper's (section 3.3). Gated with sigmoid it is GLU, with GELU GEGLU, with
    SiLU SwiGLU (Shazeer, 2020). `W1` is `up`, `W2` is `down`, `W3` is `value`.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Activation = "relu",
        gated: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.up = Linear(d_model, d_ff, bias=bias)
        self.value = Linear(d_model, d_ff, bias=bias) if gated else None
        self.down = Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)
        for linear in (self.up, self.value, self.down):
            if linear is not None:
                init_linear(linear)

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Map `(B, L, D)` to `(B, L, D)`, each position by itself."""
        hidden_BLF = self.activation(self.up(x_BLD))
        if self.value is not None:
            hidden_BLF = hidden_BLF * self.value(x_BLD)
        out_BLD: Tensor = self.down(self.dropout(hidden_BLF))
        return out_BLD
