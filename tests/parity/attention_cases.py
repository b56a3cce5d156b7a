"""Patterns, drawn inputs, and the check that a fast path equals the reference."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from tests.unit.models.small import distance
from torch import Tensor

from dragoman.nn import (
    ALiBi,
    Causal,
    Fixed,
    Full,
    KeyValue,
    LinearAttention,
    Longformer,
    Packed,
    Pattern,
    RelativeBias,
    Scoring,
    SlidingWindow,
    Strided,
)
from dragoman.nn.dot_product import Bias

TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5}
SIZES = st.integers(1, 40)
PLACES = st.lists(st.integers(0, 90), unique=True, max_size=4).map(tuple)
PATTERNS: dict[str, st.SearchStrategy[Pattern]] = {
    "full": st.just(Full()),
    "causal": st.just(Causal()),
    "window": st.builds(SlidingWindow, size=SIZES),
    "two-sided window": st.builds(SlidingWindow, size=SIZES, causal=st.sampled_from([False])),
    "longformer": st.builds(
        Longformer, window=SIZES, global_positions=PLACES, causal=st.booleans()
    ),
    "strided": st.builds(Strided, stride=SIZES),
    "fixed": SIZES.flatmap(
        lambda stride: st.builds(Fixed, stride=st.just(stride), summary=st.integers(1, stride))
    ),
}


DECAYS = st.one_of(
    st.sampled_from([None, "retnet"]), st.floats(0.3, 1.0).map(lambda gamma: (gamma, 1.0))
)
LINEAR = st.one_of(
    st.builds(LinearAttention, causal=st.sampled_from([False])),
    st.builds(LinearAttention, decay=DECAYS),
)


class Case(NamedTuple):
    """Inputs that require gradients, with their scoring and mask."""

    inputs: tuple[Tensor, Tensor, Tensor]
    mask: Tensor | None
    scoring: Scoring


def draw_bias(data: st.DataObject, num_heads: int, dtype: torch.dtype) -> Bias | None:
    """Make T5's or ALiBi's bias, or none."""
    relative = RelativeBias(num_buckets=8, max_distance=30)
    scheme = data.draw(st.sampled_from([None, relative, ALiBi()]))
    return None if scheme is None else scheme.make_bias(num_heads, bidirectional=True).to(dtype)


def draw_case(
    data: st.DataObject,
    *,
    longest: int,
    longest_query: int = 0,
    of_keys: bool = False,
    kv_heads: int = 0,
) -> Case:
    """Draw shapes (shared heads; `T <= S` without `longest_query`), a scoring, and a mask.

    The mask hides much; with `of_keys` it is the same for every query.
    """
    dtype = data.draw(st.sampled_from(list(TOLERANCES)))
    rows, group = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    kv_heads = kv_heads or data.draw(st.integers(1, 2))
    num_keys = data.draw(st.integers(1, longest))
    num_queries = data.draw(st.integers(1, longest_query or num_keys) | st.just(num_keys))
    head_dim = data.draw(st.integers(1, 5))
    torch.manual_seed(data.draw(st.integers(0, 2**32)))
    heads = kv_heads * group
    shapes = [(heads, num_queries), (kv_heads, num_keys), (kv_heads, num_keys)]
    q, k, v = (torch.randn(rows, *s, head_dim, dtype=dtype, requires_grad=True) for s in shapes)
    mask = None
    if data.draw(st.booleans()):
        by = (True, False, False) if of_keys else data.draw(st.tuples(*[st.booleans()] * 3))
        shape = [n if full else 1 for n, full in zip((rows, heads, num_queries), by, strict=True)]
        mask = torch.rand(*shape, num_keys) < data.draw(st.floats(0, 1))
    scoring = Scoring(
        scale=data.draw(st.floats(0.1, 2.0)),
        soft_cap=data.draw(st.sampled_from([None, 2.0])),
        bias=draw_bias(data, heads, dtype),
    )
    return Case((q, k, v), mask, scoring)


def assert_equals_reference(
    pattern: Pattern | Packed, case: Case, fast: Callable[..., Tensor]
) -> None:
    """Assert that outputs and gradients are the reference's under the mask, and blind rows zero."""
    (q, k, v), mask, scoring = case
    own = pattern.mask(q.shape[2], k.shape[2], q.device)
    seen = own if mask is None else mask if own is None else own & mask
    inner = pattern.within if isinstance(pattern, Packed) else pattern
    expected, _ = inner.reference(q, KeyValue(k, v), seen, scoring)
    out = fast(q, KeyValue(k, v), mask, scoring)
    slopes = torch.randn_like(out)
    gradients = zip(
        torch.autograd.grad(out, case.inputs, slopes),
        torch.autograd.grad(expected, case.inputs, slopes),
        strict=True,
    )
    for got, wanted in [(out, expected), *gradients]:
        assert distance(got, wanted) < TOLERANCES[q.dtype]
    if seen is not None:
        blind = ~seen.any(-1, keepdim=True).expand(*out.shape[:3], 1)
        assert not bool(out.masked_select(blind).any())
