"""Patterns of attention: values that say who may see whom and run themselves fast."""

from dragoman.nn.patterns.dense import Causal, Full, Pattern, seen_keys
from dragoman.nn.patterns.linear import LinearAttention
from dragoman.nn.patterns.longformer import Longformer
from dragoman.nn.patterns.packed import Packed
from dragoman.nn.patterns.sparse import Fixed, Strided
from dragoman.nn.patterns.weighting import Weighting, distances, reference_attention
from dragoman.nn.patterns.window import SlidingWindow

__all__ = [
    "AttentionPattern",
    "Causal",
    "Fixed",
    "Full",
    "LinearAttention",
    "Longformer",
    "Packed",
    "Pattern",
    "SlidingWindow",
    "Strided",
    "Weighting",
    "distances",
    "reference_attention",
    "seen_keys",
]

AttentionPattern = Full | Causal | SlidingWindow | Longformer | Strided | Fixed | LinearAttention
"""The patterns that a config can name."""
