"""The words of the paper, each alone, on torch and nothing else.

Tensor names end in their axes:

==== ==========================  ==== ==========================
B    batch (sentences)           K    key-value heads
S    source, keys                d    head_dim
T    target, queries             F    d_ff
L    any length                  V    vocabulary
D    d_model                     W    beams
H    heads                       N    rows, `B * W`
n    blocks of a row             c    queries of a block
s    keys that a block meets
==== ==========================  ==== ==========================

A mask is boolean, True means *may attend*, and broadcasts to `(B, H, T, S)`.
"""

from dragoman.nn.attention import NO_POSITIONS, MultiHeadAttention, PositionInfo
from dragoman.nn.cache import NO_PAST, Cache, KeyValue, NoPast, Past
from dragoman.nn.config import LayerConfig
from dragoman.nn.cpu.elementwise import Dropout
from dragoman.nn.cpu.precision import (
    Precision,
    autocast,
    evaluation_view,
    inference,
    row_invariant_products,
)
from dragoman.nn.cpu.products import Linear, head_product
from dragoman.nn.cpu.storage import GrowingStorage, RollingStorage
from dragoman.nn.dot_product import (
    Scoring,
    causal_mask,
    distances,
    length_mask,
    padding_mask,
    reference_attention,
    soft_cap,
)
from dragoman.nn.embedding import Embedding, TokenEmbedding
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.init import deepnorm, deepnorm_pair
from dragoman.nn.layers import Decoder, Encoder, Layer, Memory, Residual
from dragoman.nn.norm import LayerNorm, RMSNorm
from dragoman.nn.patterns import (
    AttentionPattern,
    Causal,
    Documents,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    Packed,
    Pattern,
    SlidingWindow,
    StateStorage,
    Strided,
)
from dragoman.nn.position import (
    ALiBi,
    DynamicScaling,
    Learned,
    LearnedPositions,
    LinearScaling,
    Llama3Scaling,
    NoPositions,
    Positions,
    PositionScheme,
    RelativeBias,
    Rotary,
    Scheme,
    Sinusoidal,
    SinusoidalPositions,
    YaRN,
    rotate,
    sinusoidal_table,
)

__all__ = [
    "NO_PAST",
    "NO_POSITIONS",
    "ALiBi",
    "AttentionPattern",
    "Cache",
    "Causal",
    "Decoder",
    "Documents",
    "Dropout",
    "DynamicScaling",
    "Embedding",
    "Encoder",
    "FeedForward",
    "Fixed",
    "Full",
    "GrowingStorage",
    "KeyValue",
    "Layer",
    "LayerConfig",
    "LayerNorm",
    "Learned",
    "LearnedPositions",
    "Linear",
    "LinearAttention",
    "LinearScaling",
    "Llama3Scaling",
    "Longformer",
    "Memory",
    "MultiHeadAttention",
    "NoPast",
    "NoPositions",
    "Packed",
    "Past",
    "Pattern",
    "PositionInfo",
    "PositionScheme",
    "Positions",
    "Precision",
    "RMSNorm",
    "RelativeBias",
    "Residual",
    "RollingStorage",
    "Rotary",
    "Scheme",
    "Scoring",
    "Sinusoidal",
    "SinusoidalPositions",
    "SlidingWindow",
    "StateStorage",
    "Strided",
    "TokenEmbedding",
    "YaRN",
    "autocast",
    "causal_mask",
    "deepnorm",
    "deepnorm_pair",
    "distances",
    "evaluation_view",
    "head_product",
    "inference",
    "length_mask",
    "padding_mask",
    "reference_attention",
    "rotate",
    "row_invariant_products",
    "sinusoidal_table",
    "soft_cap",
]
