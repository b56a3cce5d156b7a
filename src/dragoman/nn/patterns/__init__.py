"""Patterns of attention: values that say who may see whom and run themselves fast."""

from dragoman.nn.patterns.dense import Causal, Full, Pattern
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
    "Longformer",
    "Packed",
    "Pattern",
    "SlidingWindow",
    "Strided",
    "Weighting",
    "distances",
    "reference_attention",
]

AttentionPattern = Full | Causal | SlidingWindow | Longformer | Strided | Fixed
"""The patterns that a config can name."""
