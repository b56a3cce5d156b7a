"""The layer settings that the configs of all models share."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import nn

from dragoman.errors import InputError
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import Activation, FeedForward
from dragoman.nn.init import DeepNorm, InitName, init_gpt2, scale_weights
from dragoman.nn.norm import NormName, make_norm
from dragoman.nn.patterns import AttentionPattern
from dragoman.nn.patterns.pattern import Pattern
from dragoman.nn.position import PositionScheme
from dragoman.nn.position.rotary import Rotary
from dragoman.nn.position.sinusoidal import Sinusoidal
from dragoman.nn.qk_norm import QkNorm
from dragoman.nn.sizes import head_width
from dragoman.ranges import BelowOne, Count, Positive, check_ranges

NormPosition = Literal["post", "pre", "sandwich", "branch", "deepnorm"]
LOOKED_AT = 64
"""Number of tokens for which the mask of a decoder's pattern is checked against `is_causal`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerConfig:
    """All that a layer is built from, and how its stack begins and ends.

    The defaults are the paper's base model, with a bias in every projection as in
    `torch.nn.Transformer`: the paper's formulas have biases in the feed-forward network only.
    """

    d_model: Count = 512
    """Width of the residual stream."""
    num_heads: Count = 8
    """Number of attention heads."""
    num_kv_heads: Count | None = None
    """Number of key-value heads (grouped-query attention); `num_heads` by default."""
    head_dim: Count | None = None
    """Width of a head; d_model / num_heads by default."""
    d_ff: Count = 2048
    """Width of the feed-forward network."""
    activation: Activation = "relu"
    """Activation of the feed-forward network."""
    gated: bool = False
    """Whether the feed-forward network is gated (GLU, GEGLU, SwiGLU by activation)."""
    bias: bool = True
    """Whether projections and norms have a bias."""
    qkv_bias: bool | None = None
    """Whether the projections to queries, keys and values have a bias; as `bias` by default."""
    ffn_bias: bool | None = None
    """Whether the feed-forward network has biases; as `bias` by default."""
    qk_norm: QkNorm = False
    """Whether each head's queries and keys are normalized by RMSNorm; `whole` normalizes those of
    all heads together."""
    attention_scale: Positive | None = None
    """Factor on the attention scores; head_dim^-0.5 by default (T5: 1)."""
    score_soft_cap: Positive | None = None
    """Soft cap of the attention scores, c tanh(score / c); none by default."""
    pad_id: int = 0
    """Id of the padding token; -1 if the vocabulary has none."""
    scale_embedding: bool = False
    """Whether embeddings are multiplied by the square root of d_model."""
    embedding_scale: Positive | None = None
    """Factor on embeddings instead of that of scale_embedding (Granite); none by default."""
    embedding_norm: bool = False
    """Whether the sums of embeddings and positions are normalized (BERT, BART: per stack)."""
    positions: PositionScheme = field(default_factory=Sinusoidal)
    """Position scheme."""
    norm: NormName = "layer"
    """LayerNorm or RMSNorm."""
    norm_eps: Positive = 1e-5
    """Epsilon of the norms, added to the variance."""
    norm_position: NormPosition = "post"
    """Post-norm as in the paper, pre-norm, pre-norm with a second norm after each sublayer, that
    second norm alone (`branch`), or DeepNorm for deep post-norm stacks."""
    final_norm: bool | None = None
    """Whether each stack ends in a norm; by default post-norm stacks do not."""
    init: InitName = "xavier"
    """Initialization of matrices: Xavier-uniform, or scaled by depth as in GPT-2."""
    dropout: BelowOne = 0.1
    """Dropout on sublayer outputs and on the sums of embeddings and positions."""
    attention_dropout: BelowOne = 0.0
    """Dropout on attention weights."""
    ffn_dropout: BelowOne = 0.0
    """Dropout inside the feed-forward network."""
    layer_drop: BelowOne = 0.0
    """Probability of skipping a layer in training (LayerDrop)."""

    def __post_init__(self) -> None:
        check_ranges(self)
        head_width(self.d_model, self.num_heads, self.num_kv_heads, self.head_dim)
        self.positions.check(self.d_model, self.width)
        rotary = self.positions if isinstance(self.positions, Rotary) else Rotary()
        if rotary.before_norm and self.qk_norm is not True:
            raise InputError("positions.before_norm is the place of qk_norm; set qk_norm = true")

    def _check_patterns(
        self, name: str, patterns: tuple[AttentionPattern, ...], *, causal: bool = False
    ) -> None:
        """Reject settings that a pattern would silently ignore, and non-causal ones in decoders."""
        for index, pattern in enumerate(patterns):
            here = f'{name}[{index}] = "{pattern.kind}"'
            if causal and not (pattern.is_causal and _looks_back(pattern, here)):
                raise InputError(
                    f"{here} lets a token see later ones, which a decoder must not: take a causal "
                    "pattern"
                )
            try:
                pattern.check_heads(self.num_kv_heads or self.num_heads)
            except InputError as error:
                raise InputError(f"{here}: {error}") from error
            if pattern.has_scores:
                continue
            for key in ("attention_scale", "score_soft_cap", "attention_dropout"):
                if getattr(self, key):
                    raise InputError(
                        f"{here} has no scores, so {key} = {getattr(self, key)} cannot act on "
                        "them: leave one of the two out"
                    )
            if self.positions.changes_scores:
                raise InputError(
                    f'{here} has no scores, so positions = "{self.positions.kind}" cannot be added '
                    'to them: take "rotary" or positions that are added to the embeddings'
                )

    @property
    def width(self) -> int:
        """The width of a head."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def ends_in_norm(self) -> bool:
        """Whether each stack ends in a norm."""
        before = self.norm_position in ("pre", "sandwich", "branch")
        return before if self.final_norm is None else self.final_norm

    def make_attention(self, pattern: Pattern) -> MultiHeadAttention:
        """Build an attention module with these settings."""
        return MultiHeadAttention(
            self.d_model,
            self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            bias=self.bias,
            qkv_bias=self.qkv_bias,
            qk_norm=self.qk_norm,
            norm_eps=self.norm_eps,
            scale=self.attention_scale,
            soft_cap=self.score_soft_cap,
            dropout=self.attention_dropout,
            pattern=pattern,
        )

    def make_ffn(self) -> FeedForward:
        """Build a feed-forward network with these settings."""
        return FeedForward(
            self.d_model,
            self.d_ff,
            activation=self.activation,
            gated=self.gated,
            bias=self.bias if self.ffn_bias is None else self.ffn_bias,
            dropout=self.ffn_dropout,
        )

    def make_norm(self) -> nn.Module:
        """Build a norm with these settings."""
        return make_norm(self.norm, self.d_model, eps=self.norm_eps, bias=self.bias)

    def init_stack(self, stack: nn.Module, depth: DeepNorm | None) -> None:
        """Redraw or rescale a stack's weights if the initialisation depends on the depth."""
        attentions = [m for m in stack.modules() if isinstance(m, MultiHeadAttention)]
        ffns = [m for m in stack.modules() if isinstance(m, FeedForward)]
        ups = [ffn.up for ffn in ffns] + [ffn.value for ffn in ffns if ffn.value is not None]
        ends = [attention.out_proj for attention in attentions] + [ffn.down for ffn in ffns]
        if self.init == "gpt2":
            inner = [linear for a in attentions for linear in (a.q_proj, a.kv_proj)]
            init_gpt2([*inner, *ups], ends, len(ffns))
        if depth is not None:
            values = [attention.kv_proj.weight.chunk(2)[1] for attention in attentions]
            scale_weights([*values, *(linear.weight for linear in (*ups, *ends))], depth.beta)


def _looks_back(pattern: Pattern, here: str) -> bool:
    """Return whether a mask hides later keys; without a mask, `attend` is trusted to do so."""
    with torch.device("cpu") as cpu:  # also for a mask made on the default device
        mask = pattern.mask(LOOKED_AT, LOOKED_AT, cpu)
    if mask is None:
        return True
    if mask.dtype != torch.bool:
        raise InputError(
            f"{here} has a mask of {mask.dtype}: make it boolean, True where a query sees a key"
        )
    return not torch.atleast_2d(mask).triu(1).any()
