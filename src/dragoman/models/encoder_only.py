"""The encoder-only Transformer: BERT, and ViT with patches instead of words."""

import torch
from torch import Tensor, nn

from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.heads import make_head
from dragoman.nn import Embedding, Encoder, deepnorm
from dragoman.nn.words import WordEmbedding


class EncoderOnly(nn.Module):
    """`head(encoder(ids))`: masked words, a class, a tag for each token, or hidden states."""

    def __init__(self, config: EncoderOnlyConfig) -> None:
        super().__init__()
        self.pad_id = config.pad_id
        self.embedding = Embedding(
            config, config.vocab_size, num_token_types=config.num_token_types
        )
        rows = config.word_features
        self.words = WordEmbedding(rows, config.d_model) if rows else None
        self.encoder = Encoder(
            config,
            config.num_layers,
            config.patterns,
            deepnorm(config.num_layers) if config.norm_position == "deepnorm" else None,
        )
        if not config.first_norm:
            self.encoder.each_layer()[0].self_attn_residual.norm = nn.Identity()
        self.head = make_head(config.head, config, self.embedding.weight)

    def forward(
        self,
        ids_BL: Tensor,
        mask_BL: Tensor | None = None,
        types_BL: Tensor | None = None,
        words_BLF: Tensor | None = None,
    ) -> Tensor:
        """Return the head's output for ids `(B, L)`; `mask` is False at padding, by default pad_id.

        A model with word features takes them at each word's first piece, and zeros elsewhere.
        The output is logits of masked words `(B, L, V)`, of classes `(B, C)` or of tags
        `(B, L, C)`, or the hidden states `(B, L, D)`.
        """
        mask_BL = self._mask(ids_BL, mask_BL)
        out: Tensor = self.head(self.hidden(ids_BL, mask_BL, types_BL, words_BLF), mask_BL)
        return out

    def hidden(
        self,
        ids_BL: Tensor,
        mask_BL: Tensor | None = None,
        types_BL: Tensor | None = None,
        words_BLF: Tensor | None = None,
    ) -> Tensor:
        """Return the last hidden states `(B, L, D)`."""
        mask_BL = self._mask(ids_BL, mask_BL)
        x_BLD = self.embedding(ids_BL)
        if self.words is not None and words_BLF is not None:
            x_BLD = x_BLD + self.words(words_BLF).to(x_BLD.dtype)
        x_BLD = self.embedding.complete(x_BLD, range(ids_BL.shape[1]), types_BL)
        out_BLD: Tensor = self.encoder(x_BLD, mask_BL[:, None, None, :])
        return out_BLD

    def encode(self, x_BLD: Tensor, mask_BL: Tensor | None = None) -> Tensor:
        """Return the head's output for vectors `(B, L, D)` that are not words: patches, sounds."""
        if mask_BL is None:
            mask_BL = torch.ones(x_BLD.shape[:2], dtype=torch.bool, device=x_BLD.device)
        x_BLD = self.embedding.complete(x_BLD, range(x_BLD.shape[1]))
        out: Tensor = self.head(self.encoder(x_BLD, mask_BL[:, None, None, :]), mask_BL)
        return out

    def _mask(self, ids_BL: Tensor, mask_BL: Tensor | None) -> Tensor:
        return ids_BL != self.pad_id if mask_BL is None else mask_BL
