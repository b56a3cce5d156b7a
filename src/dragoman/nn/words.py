"""Embedding of the surface features of words, next to that of their pieces."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class WordEmbedding(nn.Module):
    """`sqrt(D / F) * sum_f E[features_f]`: `F` numbers of a word to a vector of unit variance.

    Row 0 means "no word": it is zero and receives no gradient. The other rows are drawn from
    `N(0, 1/D)`.
    """

    def __init__(self, rows: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, d_model))
        nn.init.normal_(self.weight)  # on the meta device, `randn` imports the compiler
        with torch.no_grad():
            self.weight.mul_(d_model**-0.5)
            self.weight[0].zero_()

    def forward(self, features_BLF: Tensor) -> Tensor:
        """Map numbers `(B, L, F)` to vectors `(B, L, D)`."""
        scale = math.sqrt(self.weight.shape[1] / features_BLF.shape[2])
        return F.embedding(features_BLF, self.weight, padding_idx=0).sum(2) * scale
