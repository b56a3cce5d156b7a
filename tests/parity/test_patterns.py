"""Every pattern's fast path against its mask and the readable reference, forward and backward."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parity.attention_cases import PATTERNS, Case, assert_equals_reference, draw_case

from dragoman.nn import (
    Causal,
    Fixed,
    Full,
    LinearAttention,
    Longformer,
    Pattern,
    Scoring,
    SlidingWindow,
    Strided,
)
from dragoman.nn.patterns.blocks import SEGMENT


@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data(), longest=st.sampled_from([40, 40, 400]))
@settings(max_examples=85)
def test_a_pattern_equals_its_mask(name: str, data: st.DataObject, longest: int) -> None:
    """With any bias and cap, with fewer queries than keys too; with any mask in short texts.

    Long texts, with padding, are split into blocks.
    """
    pattern = data.draw(PATTERNS[name])
    case = draw_case(data, longest=longest, of_keys=longest > 40)
    assert_equals_reference(pattern, case, pattern.attend)


@pytest.mark.parametrize(
    "pattern",
    [
        Full(),
        Causal(),
        SlidingWindow(size=100),
        SlidingWindow(size=1500),
        SlidingWindow(size=70, causal=False),
        Longformer(window=30, global_positions=(0, 1, 1023, 1024, 2080)),
        Longformer(window=100, global_positions=(0, 1024), causal=True),
        Strided(stride=60),
        Fixed(stride=64, summary=3),
        LinearAttention(decay=(0.99,)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("earlier", [0, 77])
def test_a_pattern_equals_its_mask_across_segments(pattern: Pattern, earlier: int) -> None:
    """This holds for texts of several segments, with padding and with keys from a cache."""
    torch.manual_seed(0)
    lengths = (2 * SEGMENT + 37 - earlier, 2 * SEGMENT + 37, 2 * SEGMENT + 37)
    q, k, v = (torch.randn(1, 1, n, 2, dtype=torch.float64, requires_grad=True) for n in lengths)
    mask = torch.rand(1, 1, 1, k.shape[2]) < 0.8
    case = Case((q, k, v), mask, Scoring(scale=0.7))
    assert_equals_reference(pattern, case, pattern.attend)
