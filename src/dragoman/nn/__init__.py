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

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.cache import (
    Cache,
    GrowingStorage,
    KeyValue,
    NoPast,
    Past,
    RollingStorage,
    StateStorage,
)
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import TokenEmbedding
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.init import deepnorm, deepnorm_pair
from dragoman.nn.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, Memory, Residual
from dragoman.nn.mask import Documents, causal_mask, length_mask, padding_mask
from dragoman.nn.norm import LayerNorm, RMSNorm
from dragoman.nn.patterns import (
    AttentionPattern,
    Causal,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    Packed,
    Pattern,
    SlidingWindow,
    Strided,
    Weighting,
    reference_attention,
)
from dragoman.nn.position import (
    NOWHERE,
    ALiBi,
    DynamicScaling,
    Learned,
    LearnedPositions,
    LinearScaling,
    Llama3Scaling,
    NoPositions,
    Place,
    Positions,
    PositionScheme,
    RelativeBias,
    Rotary,
    Sinusoidal,
    SinusoidalPositions,
    YaRN,
    rotate,
    sinusoidal_table,
)
from dragoman.nn.precision import (
    Precision,
    autocast,
    evaluation_view,
    inference,
    row_invariant_products,
)
from dragoman.nn.products import Linear, head_product
from dragoman.nn.shape import LayerShape
from dragoman.nn.softcap import soft_cap

__all__ = [
    "NOWHERE",
    "ALiBi",
    "AttentionPattern",
    "Cache",
    "Causal",
    "Decoder",
    "DecoderLayer",
    "Documents",
    "Dropout",
    "DynamicScaling",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Fixed",
    "Full",
    "GrowingStorage",
    "KeyValue",
    "LayerNorm",
    "LayerShape",
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
    "Place",
    "PositionScheme",
    "Positions",
    "Precision",
    "RMSNorm",
    "RelativeBias",
    "Residual",
    "RollingStorage",
    "Rotary",
    "Sinusoidal",
    "SinusoidalPositions",
    "SlidingWindow",
    "StateStorage",
    "Strided",
    "TokenEmbedding",
    "Weighting",
    "YaRN",
    "autocast",
    "causal_mask",
    "deepnorm",
    "deepnorm_pair",
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
