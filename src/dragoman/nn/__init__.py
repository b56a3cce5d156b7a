"""The paper's building blocks, each on its own, with torch as the only dependency.

Tensor names end in their axes:

==== ==========================  ==== ==========================
B    batch (sentences)           K    key-value heads
S    source, keys                d    head_dim
T    target, queries             F    d_ff
L    any length                  V    vocabulary
D    d_model                     W    beams
H    heads                       N    rows, `B * W`
k    best tokens of a row        M    some of the rows; mel bands
n    blocks of a row             c    queries of a block
s    keys of a block
==== ==========================  ==== ==========================

A mask is boolean, True means *may attend*, and broadcasts to `(B, H, T, S)`.
"""

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.cache import NO_PAST, Cache, KeyValue, NoPast, Past
from dragoman.nn.config import LayerConfig
from dragoman.nn.cpu.elementwise import Dropout
from dragoman.nn.cpu.products import (
    Arithmetic,
    Linear,
    Precision,
    autocast,
    evaluation_view,
    head_product,
    inference,
    row_invariant_products,
)
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
from dragoman.nn.layers import Decoder, Encoder, Memory, Residual
from dragoman.nn.norm import LayerNorm, RMSNorm
from dragoman.nn.patterns import AttentionPattern
from dragoman.nn.patterns.linear import LinearAttention, StateStorage
from dragoman.nn.patterns.packed import Documents, Packed
from dragoman.nn.patterns.pattern import Causal, Full, Pattern
from dragoman.nn.patterns.sparse import Fixed, Strided
from dragoman.nn.patterns.window import Longformer, SlidingWindow
from dragoman.nn.position import PositionScheme
from dragoman.nn.position.bias import ALiBi, RelativeBias
from dragoman.nn.position.rotary import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRope,
    Rotary,
    YaRN,
)
from dragoman.nn.position.scheme import (
    Learned,
    LearnedPositions,
    NoPositions,
    PositionInfo,
    Positions,
    Scheme,
    rotate,
)
from dragoman.nn.position.sinusoidal import Sinusoidal, SinusoidalPositions, sinusoidal_table
from dragoman.nn.rwkv import ChannelMix, Rwkv, RwkvDecoder, RwkvLayer, TimeMix, wkv
from dragoman.nn.sound import SoundEmbedding, log_mel, mel_filters

__all__ = [
    "NO_PAST",
    "ALiBi",
    "Arithmetic",
    "AttentionPattern",
    "Cache",
    "Causal",
    "ChannelMix",
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
    "LayerConfig",
    "LayerNorm",
    "Learned",
    "LearnedPositions",
    "Linear",
    "LinearAttention",
    "LinearScaling",
    "Llama3Scaling",
    "LongRope",
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
    "Rwkv",
    "RwkvDecoder",
    "RwkvLayer",
    "Scheme",
    "Scoring",
    "Sinusoidal",
    "SinusoidalPositions",
    "SlidingWindow",
    "SoundEmbedding",
    "StateStorage",
    "Strided",
    "TimeMix",
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
    "log_mel",
    "mel_filters",
    "padding_mask",
    "reference_attention",
    "rotate",
    "row_invariant_products",
    "sinusoidal_table",
    "soft_cap",
    "wkv",
]
