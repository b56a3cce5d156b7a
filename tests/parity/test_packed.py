"""Packed documents equal the single documents, at no more than their own cost."""

import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parity.attention_cases import LINEAR, PATTERNS, Case, assert_equals_reference, draw_case
from tests.unit.models.small import distance
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from dragoman.nn import (
    Causal,
    Documents,
    Full,
    KeyValue,
    Packed,
    Pattern,
    Scoring,
    SlidingWindow,
    reference_attention,
)
from dragoman.nn.patterns.packed import KEYWORDS, attend_by_varlen, torch_has_it, window_of

WITHIN = st.one_of(*PATTERNS.values())
LENGTHS = st.lists(st.one_of(st.integers(0, 9), st.integers(1, 80)), min_size=1, max_size=12)


def draw_packed(data: st.DataObject) -> tuple[tuple[int, ...], Case]:
    """Draw documents and a row that they fill, with a mask of keys."""
    lengths = data.draw(LENGTHS.filter(any))
    case = draw_case(data, longest=1)
    shapes = [x.shape for x in case.inputs]
    q, k, v = (
        torch.randn(*s[:2], sum(lengths), s[3], dtype=case.inputs[0].dtype, requires_grad=True)
        for s in shapes
    )
    mask = None
    if data.draw(st.booleans()):
        mask = torch.rand(data.draw(st.sampled_from([1, len(q)])), 1, 1, sum(lengths)) < 0.7
    return tuple(lengths), Case((q, k, v), mask, case.scoring)


@given(WITHIN, st.data())
@settings(max_examples=100)
def test_packed_documents_equal_their_mask(within: Pattern, data: st.DataObject) -> None:
    """Outputs and gradients, of documents of any lengths, empty ones among them."""
    lengths, case = draw_packed(data)
    pattern = Packed(within, Documents(lengths))
    assert_equals_reference(pattern, case, pattern.attend)


@given(st.one_of(WITHIN, LINEAR.filter(lambda p: not isinstance(p.decay, tuple))), st.data())
@settings(max_examples=60)
def test_packed_documents_are_the_documents_alone(within: Pattern, data: st.DataObject) -> None:
    """Each document's outputs are those it has without the others."""
    lengths, case = draw_packed(data)
    scoring = Scoring(scale=case.scoring.scale)
    q, k, v = (x.detach().double() for x in case.inputs)
    out = Packed(within, Documents(lengths)).attend(q, KeyValue(k, v), None, scoring)
    parts = zip(*(x.split(lengths, dim=2) for x in (out, q, k, v)), strict=True)
    for got, *(q1, k1, v1) in parts:
        if got.shape[2]:
            assert distance(got, within.attend(q1, KeyValue(k1, v1), None, scoring)) < 1e-12


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.integers(0, 2**32))
@settings(max_examples=30)
def test_the_cost_is_the_sum_of_squares(lengths: list[int], seed: int) -> None:
    """Products count `4 d` multiplications and additions for each pair within a document.

    Filling up groups adds an eighth to a length at most, or 7 places.
    """
    torch.manual_seed(seed)
    heads, head_dim = 2, 4
    q, k, v = (torch.randn(1, heads, sum(lengths), head_dim) for _ in range(3))
    with FlopCounterMode(display=False) as counter:
        Packed(Full(), Documents(tuple(lengths))).attend(
            q, KeyValue(k, v), None, Scoring(scale=1.0)
        )
    pairs = sum(max(n * 9 / 8, n + 7) ** 2 for n in lengths)
    least = sum(n**2 for n in lengths)
    # a product of few rows is filled up to 4096 multiplications (nn/cpu/products.py)
    small = 2 * heads * len(lengths) * 2 * 4096
    assert 4 * heads * head_dim * least <= counter.get_total_flops()
    assert counter.get_total_flops() <= 4 * heads * head_dim * pairs + small


def varlen_stand_in(  # noqa: PLR0917 (torch's form)
    q: Tensor,
    k: Tensor,
    v: Tensor,
    ends_q: Tensor,
    ends_k: Tensor,
    max_q: int,
    max_k: int,
    *,
    scale: float,
    window_size: tuple[int, int],
    enable_gqa: bool,
) -> Tensor:
    """Compute what torch documents for its kernel, `(M, H, d)`, one sequence after another."""
    assert torch.equal(ends_q, ends_k)
    assert ends_q.dtype == torch.int32
    assert max_q == max_k == int(ends_q.diff().max())
    assert enable_gqa == (q.shape[1] != k.shape[1])
    outs = []
    for start, end in zip(ends_q[:-1].tolist(), ends_q[1:].tolist(), strict=True):
        qs, ks, vs = (x[start:end].transpose(0, 1)[None] for x in (q, k, v))
        steps = torch.arange(end - start) - torch.arange(end - start)[:, None]
        left, right = (n if n >= 0 else end for n in window_size)
        mask = (steps >= -left) & (steps <= right)
        out, _ = reference_attention(qs, ks, vs, mask, Scoring(scale=scale))
        outs.append(out[0].transpose(0, 1))
    return torch.cat(outs)


def test_the_variable_length_kernel_is_told_what_it_takes() -> None:
    """The keywords that we use are those of the function; torch has them from 2.12 on."""
    told = inspect.signature(varlen_stand_in).parameters.values()
    assert {each.name for each in told if each.kind is each.KEYWORD_ONLY} == KEYWORDS
    assert torch_has_it() or torch.__version__ < "2.12"


@pytest.mark.parametrize(
    "within",
    [Full(), Causal(), SlidingWindow(size=3), SlidingWindow(size=2, causal=False)],
    ids=repr,
)
def test_the_variable_length_kernel_is_told_the_same(within: Pattern) -> None:
    """Layout, ends, window, scale and shared heads fit a kernel that does what torch documents."""
    torch.manual_seed(0)
    lengths = (5, 1, 8)
    q, k, v = (torch.randn(2, heads, 14, 3).double() for heads in (4, 2, 2))
    window, scoring = window_of(within), Scoring(scale=0.3)
    assert window is not None
    out = attend_by_varlen(q, KeyValue(k, v), lengths, window, scoring, varlen_stand_in)
    expected = Packed(within, Documents(lengths)).attend(q, KeyValue(k, v), None, scoring)
    assert distance(out, expected) < 1e-12
