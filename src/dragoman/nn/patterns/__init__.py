"""Attention patterns: values that define who may attend to whom, and compute it fast."""

from dragoman.nn.patterns.linear import LinearAttention
from dragoman.nn.patterns.pattern import Causal, Full
from dragoman.nn.patterns.sparse import Fixed, Strided
from dragoman.nn.patterns.window import Longformer, SlidingWindow

__all__ = ["AttentionPattern"]

AttentionPattern = Full | Causal | SlidingWindow | Longformer | Strided | Fixed | LinearAttention
"""The patterns that a config can name."""
