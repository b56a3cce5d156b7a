"""Token embedding (paper, section 3.4) and the input of a stack: tokens, positions, dropout."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.nn.config import LayerConfig
from dragoman.nn.cpu.elementwise import Dropout
from dragoman.nn.position.scheme import Positions


class TokenEmbedding(nn.Module):
    """`E[ids] * sqrt(D)`: ids `(B, L)` to vectors `(B, L, D)`.

    The row of `pad_id` starts at zero and receives no gradient from this module. The matrix is
    drawn from `N(0, 1/D)` if it is scaled (so that the scaled vectors have unit variance and the
    same matrix, tied, gives logits of unit variance), otherwise from `N(0, 0.02^2)`. Under autocast
    the vectors have the autocast dtype, so the residual stream has it too.

    A vocabulary without padding (GPT-2, Llama) has `pad_id = -1`: no row is special, and ids of -1,
    which masks hide, are mapped to row 0.
    """

    def __init__(self, vocab_size: int, d_model: int, *, pad_id: int, scale: bool = True) -> None:
        super().__init__()
        if max(pad_id, 0) >= vocab_size:
            raise InputError(f"pad_id = {pad_id} is not in a vocabulary of {vocab_size} tokens")
        self.pad_id = pad_id
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5 if self.scale != 1.0 else 0.02)
        if pad_id >= 0:
            with torch.no_grad():
                self.weight[pad_id].zero_()

    def forward(self, ids_BL: Tensor) -> Tensor:
        """Look up the ids and scale the vectors."""
        if self.pad_id >= 0:
            x_BLD = F.embedding(ids_BL, self.weight, padding_idx=self.pad_id) * self.scale
        else:
            x_BLD = F.embedding(ids_BL.clamp(min=0), self.weight) * self.scale
        device = x_BLD.device.type
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            return x_BLD.to(torch.get_autocast_dtype(device))
        return x_BLD


class Embedding(TokenEmbedding):
    """`drop(norm(E[ids] * scale + PE(positions) + types))`, with the parts that the config has."""

    def __init__(self, config: LayerConfig, vocab_size: int, *, num_token_types: int = 0) -> None:
        super().__init__(
            vocab_size, config.d_model, pad_id=config.pad_id, scale=config.scale_embedding
        )
        self.scale = config.embedding_scale or self.scale
        self.positions = config.positions.make_table(config.d_model)
        self.num_positions = config.positions.num_positions
        """Number of positions that have a vector; None if unlimited."""
        self.types = nn.Embedding(num_token_types, config.d_model) if num_token_types else None
        if self.types is not None:
            nn.init.normal_(self.types.weight, std=0.02)  # torch's default would drown the tokens
        self.norm = config.make_norm() if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)

    def embed(self, ids_BL: Tensor, positions: Positions, types_BL: Tensor | None = None) -> Tensor:
        """Map ids `(B, L)` to vectors `(B, L, D)`; types default to 0."""
        return self.complete(self(ids_BL), positions, types_BL)

    def complete(
        self, x_BLD: Tensor, positions: Positions, types_BL: Tensor | None = None
    ) -> Tensor:
        """Add positions and types to vectors from any source, then apply norm and dropout."""
        if self.positions is not None:
            x_BLD = self.positions(x_BLD, positions)
        if self.types is not None:
            types_BLD = self.types.weight[0] if types_BL is None else self.types(types_BL)
            x_BLD = x_BLD + types_BLD
        out_BLD: Tensor = self.dropout(self.norm(x_BLD))
        return out_BLD
