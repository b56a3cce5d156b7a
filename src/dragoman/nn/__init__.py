"""The words of the paper, each alone, on torch and nothing else.

Tensor names end in their axes:

==== ==========================  ==== ==========================
B    batch (sentences)           K    key-value heads
S    source, keys                d    head_dim
T    target, queries             F    d_ff
L    any length                  V    vocabulary
D    d_model                     W    beams
H    heads                       N    rows, `B * W`
==== ==========================  ==== ==========================

A mask is boolean, True means *may attend*, and broadcasts to `(B, H, T, S)`.
"""

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.cache import Cache, GrowingStorage, KeyValue, NoPast, Past
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import TokenEmbedding
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, LayerShape, Residual
from dragoman.nn.mask import causal_mask, length_mask, padding_mask
from dragoman.nn.norm import LayerNorm, RMSNorm
from dragoman.nn.patterns import Causal, Full, Pattern, reference_attention
from dragoman.nn.position import SinusoidalPositions, sinusoidal_table
from dragoman.nn.precision import Precision, autocast, row_invariant_products
from dragoman.nn.products import Linear, head_product

__all__ = [
    "Cache",
    "Causal",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Full",
    "GrowingStorage",
    "KeyValue",
    "LayerNorm",
    "LayerShape",
    "Linear",
    "MultiHeadAttention",
    "NoPast",
    "Past",
    "Pattern",
    "Precision",
    "RMSNorm",
    "Residual",
    "SinusoidalPositions",
    "TokenEmbedding",
    "autocast",
    "causal_mask",
    "head_product",
    "length_mask",
    "padding_mask",
    "reference_attention",
    "row_invariant_products",
    "sinusoidal_table",
]
