"""Token embedding (paper, section 3.4)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import InputError


class TokenEmbedding(nn.Module):
    """`E[ids] * sqrt(D)`: ids `(B, L)` to vectors `(B, L, D)`.

    The row of `pad_id` starts as zeros and receives no gradient from here. The matrix is drawn
    from `N(0, D^-1/2)` where it is scaled (so that the scaled vectors have unit variance and the
    same matrix, tied, gives logits of unit variance), else from `N(0, 0.02)`. Under autocast the
    vectors leave in the autocast dtype: the residual stream then stays in it.

    A vocabulary without padding (GPT-2, Llama) has `pad_id = -1`: no row is special, and ids of -1,
    which masks hide, are given some row.
    """

    def __init__(self, vocab_size: int, d_model: int, *, pad_id: int, scale: bool = True) -> None:
        super().__init__()
        if max(pad_id, 0) >= vocab_size:
            raise InputError(f"pad_id = {pad_id} is not in a vocabulary of {vocab_size} tokens")
        self.pad_id = pad_id
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the matrix anew."""
        std = self.weight.shape[1] ** -0.5 if self.scale != 1.0 else 0.02
        nn.init.normal_(self.weight, std=std)
        if self.pad_id >= 0:
            with torch.no_grad():
                self.weight[self.pad_id].zero_()

    def forward(self, ids_BL: Tensor) -> Tensor:
        """Look up and scale."""
        if self.pad_id >= 0:
            x_BLD = F.embedding(ids_BL, self.weight, padding_idx=self.pad_id) * self.scale
        else:
            x_BLD = F.embedding(ids_BL.clamp(min=0), self.weight) * self.scale
        device = x_BLD.device.type
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            return x_BLD.to(torch.get_autocast_dtype(device))
        return x_BLD
