"""Layers and stacks of the encoder and the decoder (paper, section 3.1, figure 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.cache import Cache, KeyValue, Past
from dragoman.nn.dropout import Dropout
from dragoman.nn.feedforward import Activation, FeedForward
from dragoman.nn.norm import NormName, make_norm
from dragoman.nn.patterns import Causal, Full, Pattern

NormPosition = Literal["post", "pre"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """Everything that one layer is built from."""

    d_model: int
    """Width of the residual stream."""
    num_heads: int
    """Query heads."""
    d_ff: int
    """Width of the feed-forward network."""
    num_kv_heads: int | None = None
    """Key-value heads; as many as query heads unless given."""
    head_dim: int | None = None
    """Width of a head; `d_model / num_heads` unless given."""
    activation: Activation = "relu"
    """Of the feed-forward network."""
    gated: bool = False
    """Whether the feed-forward network is gated."""
    bias: bool = True
    """Whether projections and norms have a bias."""
    norm: NormName = "layer"
    """LayerNorm or RMSNorm."""
    norm_eps: float = 1e-5
    """Added to the variance inside the root."""
    norm_position: NormPosition = "post"
    """Post-norm as in the paper, or pre-norm."""
    dropout: float = 0.1
    """On the output of each sublayer."""
    attention_dropout: float = 0.0
    """On the attention weights."""
    ffn_dropout: float = 0.0
    """Inside the feed-forward network."""

    def make_attention(self, pattern: Pattern) -> MultiHeadAttention:
        """Build an attention of this shape."""
        return MultiHeadAttention(
            self.d_model,
            self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            bias=self.bias,
            dropout=self.attention_dropout,
            pattern=pattern,
        )

    def make_ffn(self) -> FeedForward:
        """Build a feed-forward network of this shape."""
        return FeedForward(
            self.d_model,
            self.d_ff,
            activation=self.activation,
            gated=self.gated,
            bias=self.bias,
            dropout=self.ffn_dropout,
        )

    def make_norm(self) -> nn.Module:
        """Build a norm of this shape."""
        return make_norm(self.norm, self.d_model, eps=self.norm_eps, bias=self.bias)


class Residual(nn.Module):
    """Wrap a sublayer `f`: post-norm `norm(x + drop(f(x)))`, pre-norm `x + drop(f(norm(x)))`."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.norm = shape.make_norm()
        self.dropout = Dropout(shape.dropout)
        self.pre = shape.norm_position == "pre"

    def forward(self, x_BLD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sublayer, dropout, the residual connection and the norm."""
        if self.pre:
            out_BLD: Tensor = x_BLD + self.dropout(sublayer(self.norm(x_BLD)))
        else:
            out_BLD = self.norm(x_BLD + self.dropout(sublayer(x_BLD)))
        return out_BLD


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, shape: LayerShape, pattern: Pattern | None = None) -> None:
        super().__init__()
        self.self_attn = shape.make_attention(pattern or Full())
        self.self_attn_residual = Residual(shape)
        self.ffn = shape.make_ffn()
        self.ffn_residual = Residual(shape)

    def forward(self, x_BSD: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map `(B, S, D)` to `(B, S, D)`; `mask` says which keys are no padding."""

        def self_attention(x_BSD: Tensor) -> Tensor:
            out_BSD: Tensor = self.self_attn(x_BSD, self.self_attn.project_kv(x_BSD), mask)
            return out_BSD

        x_BSD = self.self_attn_residual(x_BSD, self_attention)
        out_BSD: Tensor = self.ffn_residual(x_BSD, self.ffn)
        return out_BSD


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention over the encoder's output, then feed-forward."""

    def __init__(self, shape: LayerShape, index: int, pattern: Pattern | None = None) -> None:
        super().__init__()
        self.index = index
        self.self_attn = shape.make_attention(pattern or Causal())
        self.self_attn_residual = Residual(shape)
        self.cross_attn = shape.make_attention(Full())
        self.cross_attn_residual = Residual(shape)
        self.ffn = shape.make_ffn()
        self.ffn_residual = Residual(shape)

    def forward(
        self, x_NTD: Tensor, past: Past, memory_kv: KeyValue, memory_mask: Tensor | None
    ) -> Tensor:
        """Map `(N, T, D)` to `(N, T, D)`.

        `memory_kv` has a row for each of `B` sentences and `N = B * W`: the `W` beams of a
        sentence stand side by side and share its row. For cross-attention they are folded to
        `(B, W * T, D)`, which is no more than a view, since queries do not see each other there.
        """
        num_sentences = memory_kv.k_BKSd.shape[0]

        def self_attention(x_NTD: Tensor) -> Tensor:
            kv = past.extend(self.index, self.self_attn.project_kv(x_NTD))
            out_NTD: Tensor = self.self_attn(x_NTD, kv)
            return out_NTD

        def cross_attention(x_NTD: Tensor) -> Tensor:
            folded = x_NTD.reshape(num_sentences, -1, x_NTD.shape[-1])
            out: Tensor = self.cross_attn(folded, memory_kv, memory_mask)
            return out.view_as(x_NTD)

        x_NTD = self.self_attn_residual(x_NTD, self_attention)
        x_NTD = self.cross_attn_residual(x_NTD, cross_attention)
        out_NTD: Tensor = self.ffn_residual(x_NTD, self.ffn)
        return out_NTD


class Encoder(nn.Module):
    """A stack of encoder layers, and a last norm where asked for (pre-norm needs it)."""

    def __init__(self, shape: LayerShape, num_layers: int, *, final_norm: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(num_layers))
        self.final_norm = shape.make_norm() if final_norm else nn.Identity()

    def forward(self, x_BSD: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map embeddings `(B, S, D)` to the memory `(B, S, D)`."""
        for layer in self.layers:
            x_BSD = layer(x_BSD, mask)
        memory_BSD: Tensor = self.final_norm(x_BSD)
        return memory_BSD


class Decoder(nn.Module):
    """A stack of decoder layers, and a last norm where asked for."""

    def __init__(self, shape: LayerShape, num_layers: int, *, final_norm: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(shape, index) for index in range(num_layers))
        self.final_norm = shape.make_norm() if final_norm else nn.Identity()

    def project_memory(self, memory_BSD: Tensor) -> list[KeyValue]:
        """Make the keys and values of cross-attention, once for each source and layer."""
        return [layer.cross_attn.project_kv(memory_BSD) for layer in self._decoder_layers()]

    def make_cache(self) -> Cache:
        """Make an empty cache; each layer's pattern chooses its storage."""
        return Cache([layer.self_attn.pattern.make_storage() for layer in self._decoder_layers()])

    def forward(
        self,
        x_NTD: Tensor,
        past: Past,
        memory_kv: Sequence[KeyValue],
        memory_mask: Tensor | None,
    ) -> Tensor:
        """Map embeddings of the target `(N, T, D)` to hidden states `(N, T, D)`."""
        for layer, kv in zip(self.layers, memory_kv, strict=True):
            x_NTD = layer(x_NTD, past, kv, memory_mask)
        hidden_NTD: Tensor = self.final_norm(x_NTD)
        return hidden_NTD

    def _decoder_layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
