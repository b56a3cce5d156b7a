"""Patterns of attention: values that say who may see whom and run themselves fast."""

from dragoman.nn.patterns.linear import Continued, LinearAttention, StateStorage
from dragoman.nn.patterns.longformer import Longformer
from dragoman.nn.patterns.packed import Documents, Packed
from dragoman.nn.patterns.pattern import Causal, Full, Pattern, seen_keys
from dragoman.nn.patterns.sparse import Fixed, Strided
from dragoman.nn.patterns.window import SlidingWindow

__all__ = [
    "AttentionPattern",
    "Causal",
    "Continued",
    "Documents",
    "Fixed",
    "Full",
    "LinearAttention",
    "Longformer",
    "Packed",
    "Pattern",
    "SlidingWindow",
    "StateStorage",
    "Strided",
    "seen_keys",
]

AttentionPattern = Full | Causal | SlidingWindow | Longformer | Strided | Fixed | LinearAttention
"""The patterns that a config can name."""
