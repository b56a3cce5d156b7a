"""The position-wise feed-forward network (paper, section 3.3)."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.nn.cpu.elementwise import Dropout, gelu_tanh, sigmoid, silu
from dragoman.nn.cpu.products import Linear
from dragoman.nn.init import init_linear

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "sigmoid"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "sigmoid": sigmoid,
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
        """Map `(B, L, D)` to `(B, L, D)`, each position independently."""
        hidden_BLF = self.activation(self.up(x_BLD))
        if self.value is not None:
            hidden_BLF = hidden_BLF * self.value(x_BLD)
        out_BLD: Tensor = self.down(self.dropout(hidden_BLF))
        return out_BLD
