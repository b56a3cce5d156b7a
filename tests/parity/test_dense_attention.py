"""The fast paths of dense attention against the readable reference, forward and backward."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.calls import FunctionCalls
from tests.unit.models.small import distance
from torch import Tensor

from dragoman.nn import (
    Causal,
    Dropout,
    Full,
    KeyValue,
    Pattern,
    Scoring,
    causal_mask,
    reference_attention,
)
from dragoman.nn.cpu.attention import BLOCK_QUERIES, PRODUCT_KEYS, fused_attention

TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5}

SIZES = st.tuples(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 40), st.integers(1, 9)
)
DTYPES = st.sampled_from(list(TOLERANCES))
SEEDS = st.integers(0, 2**32)
# What a mask has at each axis: full size or 1; and which share of it lets through.
MASKS = st.one_of(
    st.none(), st.tuples(st.lists(st.booleans(), min_size=4, max_size=4), st.floats(0, 1))
)


Inputs = tuple[Tensor, Tensor, Tensor]


def draw_inputs(sizes: tuple[int, int, int, int, int], dtype: torch.dtype) -> Inputs:
    """Make q `(B, H, T, d)`, k and v `(B, H, S, d)` that ask for gradients."""
    rows, heads, num_queries, num_keys, head_dim = sizes
    q_BHTd, k_BHSd, v_BHSd = (
        torch.randn(rows, heads, length, head_dim, dtype=dtype, requires_grad=True)
        for length in (num_queries, num_keys, num_keys)
    )
    return q_BHTd, k_BHSd, v_BHSd


def attended(pattern: Pattern, inputs: Inputs, mask: Tensor | None) -> Tensor:
    """Attend as the paper weighs: `1 / sqrt(d)` and nothing else."""
    q_BHTd, k_BHSd, v_BHSd = inputs
    scoring = Scoring(scale=q_BHTd.shape[-1] ** -0.5)
    return pattern.attend(q_BHTd, KeyValue(k_BHSd, v_BHSd), mask, scoring)


def draw_mask(
    sizes: tuple[int, int, int, int, int], kind: tuple[list[bool], float] | None
) -> Tensor | None:
    """Make a mask that broadcasts to `(B, H, T, S)`; rows that let nothing through are frequent."""
    if kind is None:
        return None
    full, share = kind
    shape = [size if whole else 1 for size, whole in zip(sizes[:4], full, strict=True)]
    mask = torch.rand(shape) < share
    return mask & (torch.rand(*shape[:3], 1) < 0.7)


def agrees(out: Tensor, inputs: Inputs, mask: Tensor | None) -> bool:
    """Whether outputs and all gradients are the reference's, and blind rows are zeros."""
    expected, _ = reference_attention(*inputs, mask)
    slopes = torch.randn_like(out)
    pairs = [
        (out, expected),
        *zip(
            torch.autograd.grad(out, inputs, slopes),
            torch.autograd.grad(expected, inputs, slopes),
            strict=True,
        ),
    ]
    near = all(distance(got, wanted) < TOLERANCES[out.dtype] for got, wanted in pairs)
    if mask is None:
        return near
    blind = ~mask.any(-1, keepdim=True).expand(*out.shape[:3], 1)
    return near and not bool(out.masked_select(blind).any())


@given(SIZES, DTYPES, MASKS, SEEDS)
@settings(max_examples=150)
def test_products_equal_the_reference(
    sizes: tuple[int, int, int, int, int],
    dtype: torch.dtype,
    kind: tuple[list[bool], float] | None,
    seed: int,
) -> None:
    """On a CPU's usual lengths, T = 1, S = 1 and fully blind rows among them."""
    torch.manual_seed(seed)
    inputs, mask = draw_inputs(sizes, dtype), draw_mask(sizes, kind)
    assert agrees(attended(Full(), inputs, mask), inputs, mask)


@given(SIZES, DTYPES, SEEDS, st.booleans())
@settings(max_examples=50)
def test_patterns_equal_the_reference(
    sizes: tuple[int, int, int, int, int],
    dtype: torch.dtype,
    seed: int,
    masked: bool,  # noqa: FBT001 (drawn)
) -> None:
    """A pattern's own mask and the caller's are both obeyed, also where a cache is longer."""
    torch.manual_seed(seed)
    rows, heads, num_queries, num_keys, head_dim = sizes
    sizes = (rows, heads, num_queries, num_keys + num_queries, head_dim)
    inputs = draw_inputs(sizes, dtype)
    mask = draw_mask(sizes, ([True, False, False, True], 0.7)) if masked else None
    causal = causal_mask(num_queries, sizes[3])
    patterns: list[tuple[Pattern, Tensor | None]] = [
        (Full(), mask),
        (Causal(), causal if mask is None else causal & mask),
    ]
    for pattern, expected in patterns:
        assert agrees(attended(pattern, inputs, mask), inputs, expected)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no-mask"])
@pytest.mark.parametrize("num_queries", [1, 3])
def test_the_fused_kernel_equals_the_reference(
    dtype: torch.dtype, num_queries: int, *, masked: bool
) -> None:
    """Beyond the keys that products serve, the fused kernel gives the same, blind rows too."""
    torch.manual_seed(0)
    sizes = (2, 2, num_queries, PRODUCT_KEYS + 1, 4)
    inputs = draw_inputs(sizes, dtype)
    mask = torch.rand(2, 1, num_queries, sizes[3]) < 0.5 if masked else None
    if mask is not None:
        mask[1, 0, 0] = False
    assert agrees(attended(Full(), inputs, mask), inputs, mask)


@given(SIZES, DTYPES, MASKS, SEEDS)
@settings(max_examples=50)
def test_fused_attention_equals_the_reference(
    sizes: tuple[int, int, int, int, int],
    dtype: torch.dtype,
    kind: tuple[list[bool], float] | None,
    seed: int,
) -> None:
    """What runs on other devices, at any shape, blind rows among them."""
    torch.manual_seed(seed)
    inputs, mask = draw_inputs(sizes, dtype), draw_mask(sizes, kind)
    q_BHTd, k_BHSd, v_BHSd = inputs
    scoring = Scoring(scale=sizes[4] ** -0.5)
    out_BHTd = fused_attention(q_BHTd, KeyValue(k_BHSd, v_BHSd), mask, scoring)
    assert agrees(out_BHTd, inputs, mask)


@pytest.mark.parametrize(("device", "fused"), [("cpu", 0), ("meta", 1)])
@pytest.mark.parametrize("length", [5, BLOCK_QUERIES + 1])
def test_other_devices_run_the_fused_kernel(length: int, device: str, fused: int) -> None:
    """At once, where nothing differs by query; for few keys a CPU multiplies without it."""
    x_BHTd = torch.zeros(1, 2, length, 4, device=device)
    keys = torch.ones(1, 1, 1, length, dtype=torch.bool, device=device)
    for pattern, mask in ((Full(), None), (Full(), keys), (Causal(), None)):
        with FunctionCalls() as calls, torch.no_grad():
            attended(pattern, (x_BHTd, x_BHTd, x_BHTd), mask)
        called = [call.function for call in calls.seen]
        assert called.count(F.scaled_dot_product_attention) == fused


def test_dropout_takes_whole_weights() -> None:
    """Dropout on the weights leaves out keys; what is left is scaled by 1 / (1 - p)."""
    torch.manual_seed(0)
    q, k = torch.zeros(1, 1, 4000, 2), torch.zeros(1, 1, 2, 2)
    v = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    out = Full().attend(q, KeyValue(k, v), None, Scoring(scale=1.0, dropout=Dropout(0.5)))
    assert out.unique().tolist() == [0.0, 1.0]
    assert abs(out.mean().item() - 0.5) < 0.03


def test_long_causal_attention_needs_no_mask() -> None:
    """Beyond the products the fused kernel's own causal pattern agrees with the reference."""
    torch.manual_seed(0)
    length = PRODUCT_KEYS + 3
    inputs = draw_inputs((1, 1, length, length, 2), torch.float64)
    out = attended(Causal(), inputs, None)
    assert agrees(out, inputs, causal_mask(length, length))
