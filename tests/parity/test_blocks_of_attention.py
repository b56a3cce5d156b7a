"""Attention in strips of blocks, and dense attention in blocks of queries."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parity.attention_cases import SIZES, Case, assert_equals_reference, draw_case
from torch import Tensor

from dragoman.nn import ALiBi, Causal, Dropout, Full, KeyValue, Scoring, SlidingWindow
from dragoman.nn.cpu.attention import attention_by_blocks
from dragoman.nn.patterns.blocks import STRIP_SCORES


def test_windows_in_more_blocks_than_a_strip_holds() -> None:
    """Each of two strips has the masks of its blocks, and the distances that all blocks share."""
    pattern, length = SlidingWindow(size=64), 640
    shapes = [(2, heads, length, 2) for heads in (4, 2, 2)]
    q, k, v = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    bias = ALiBi().make_bias(4, bidirectional=False).double()
    mask = torch.rand(2, 1, 1, length) < 0.7
    case = Case((q, k, v), mask, Scoring(scale=0.5, bias=bias))
    assert 2 * 4 * length * 2 * pattern.size > STRIP_SCORES
    assert_equals_reference(pattern, case, pattern.attend)


@given(st.data(), SIZES, st.booleans())
@settings(max_examples=100)
def test_dense_attention_in_blocks(data: st.DataObject, block: int, causal: bool) -> None:  # noqa: FBT001 (drawn)
    """A block of queries at a time gives what all at once give, under every mask, bias and cap."""

    def fast(q: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        return attention_by_blocks(q, kv, mask, scoring, is_causal=causal, block_queries=block)

    assert_equals_reference(Causal() if causal else Full(), draw_case(data, longest=60), fast)


def test_blocks_are_computed_again_with_the_same_dropout() -> None:
    """Gradients of a blockwise pass with dropout belong to the weights of its forward pass."""
    torch.manual_seed(0)
    scoring = Scoring(scale=1.0, dropout=Dropout(0.5))
    q, k = torch.randn(1, 1, 30, 2), torch.randn(1, 1, 30, 2)
    v = torch.randn(1, 1, 30, 2, requires_grad=True)
    out = attention_by_blocks(q, KeyValue(k, v), None, scoring, is_causal=True, block_queries=7)
    slopes = torch.randn_like(out)
    (gradient,) = torch.autograd.grad(out, v, slopes)
    # `out` is linear in `v`, so the inner products agree exactly if the weights are the same
    torch.testing.assert_close((gradient * v).sum(), (out * slopes).sum())
