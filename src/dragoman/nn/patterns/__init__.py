"""Patterns of attention: values that say who may see whom and run themselves fast."""

from dragoman.nn.patterns.dense import Causal, Full, Pattern, reference_attention

__all__ = ["Causal", "Full", "Pattern", "reference_attention"]
