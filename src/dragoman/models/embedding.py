"""The input of a stack: tokens, positions, and what else is added to them."""

from typing import Protocol

from torch import Tensor, nn

from dragoman.nn import Dropout, Positions, TokenEmbedding
from dragoman.nn.position import PositionScheme


class EmbeddingConfig(Protocol):
    """What the input of a stack is built from."""

    @property
    def d_model(self) -> int: ...  # noqa: D102 (fields of the configs)
    @property
    def pad_id(self) -> int: ...  # noqa: D102
    @property
    def scale_embedding(self) -> bool: ...  # noqa: D102
    @property
    def embedding_norm(self) -> bool: ...  # noqa: D102
    @property
    def dropout(self) -> float: ...  # noqa: D102
    @property
    def positions(self) -> PositionScheme: ...  # noqa: D102
    def make_norm(self) -> nn.Module: ...  # noqa: D102


class Embedding(TokenEmbedding):
    """`drop(norm(E[ids] * scale + PE(positions) + types))`, each part where the config has it."""

    def __init__(
        self, config: EmbeddingConfig, vocab_size: int, *, num_token_types: int = 0
    ) -> None:
        super().__init__(
            vocab_size, config.d_model, pad_id=config.pad_id, scale=config.scale_embedding
        )
        self.positions = config.positions.make_table(config.d_model)
        self.num_positions = config.positions.num_positions
        """Positions that have a vector; None where nothing bounds them."""
        self.types = nn.Embedding(num_token_types, config.d_model) if num_token_types else None
        if self.types is not None:
            nn.init.normal_(self.types.weight, std=0.02)  # torch's own would drown the tokens
        self.norm = config.make_norm() if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)

    def embed(self, ids_BL: Tensor, positions: Positions, types_BL: Tensor | None = None) -> Tensor:
        """Map ids `(B, L)` to vectors `(B, L, D)`; types are 0 unless given."""
        return self.complete(self(ids_BL), positions, types_BL)

    def complete(
        self, x_BLD: Tensor, positions: Positions, types_BL: Tensor | None = None
    ) -> Tensor:
        """Add positions and types to vectors that may come from anywhere, norm and dropout."""
        if self.positions is not None:
            x_BLD = self.positions(x_BLD, positions)
        if self.types is not None:
            types_BLD = self.types.weight[0] if types_BL is None else self.types(types_BL)
            x_BLD = x_BLD + types_BLD
        out_BLD: Tensor = self.dropout(self.norm(x_BLD))
        return out_BLD
