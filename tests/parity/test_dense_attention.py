"""The fast paths of dense attention against the readable reference, forward and backward."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.calls import FunctionCalls
from tests.parity.attention_cases import TOLERANCES, Case, assert_equals_reference
from torch import Tensor

from dragoman.nn import Causal, Dropout, Full, KeyValue, Scoring
from dragoman.nn.cpu.attention import BLOCK_QUERIES, PRODUCT_KEYS, fused_attention

SIZES = st.tuples(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 40), st.integers(1, 9)
)
DTYPES = st.sampled_from(list(TOLERANCES))
SEEDS = st.integers(0, 2**32)
# What a mask has at each axis: full size or 1; and which share of it lets through.
MASKS = st.one_of(
    st.none(), st.tuples(st.lists(st.booleans(), min_size=4, max_size=4), st.floats(0, 1))
)


Sizes = tuple[int, int, int, int, int]


def draw_case(
    sizes: Sizes, dtype: torch.dtype, mask_kind: tuple[list[bool], float] | None = None
) -> Case:
    """Draw q `(B, H, T, d)`, k and v `(B, H, S, d)`, weighed as in the paper: `1 / sqrt(d)`.

    The mask broadcasts to `(B, H, T, S)`; rows that let nothing through are frequent.
    """
    rows, heads, num_queries, num_keys, head_dim = sizes
    q_BHTd, k_BHSd, v_BHSd = (
        torch.randn(rows, heads, length, head_dim, dtype=dtype, requires_grad=True)
        for length in (num_queries, num_keys, num_keys)
    )
    mask = None
    if mask_kind is not None:
        full, share = mask_kind
        shape = [size if whole else 1 for size, whole in zip(sizes[:4], full, strict=True)]
        mask = (torch.rand(shape) < share) & (torch.rand(*shape[:3], 1) < 0.7)
    return Case((q_BHTd, k_BHSd, v_BHSd), mask, Scoring(scale=head_dim**-0.5))


@pytest.mark.parametrize("fast", [Full().attend, fused_attention], ids=["products", "fused"])
@given(SIZES, DTYPES, MASKS, SEEDS)
@settings(max_examples=100)
def test_dense_attention_equals_the_reference(
    fast: Callable[..., Tensor],
    sizes: Sizes,
    dtype: torch.dtype,
    mask_kind: tuple[list[bool], float] | None,
    seed: int,
) -> None:
    """At any lengths, T = 1, S = 1, T > S and fully blind rows among them."""
    torch.manual_seed(seed)
    assert_equals_reference(Full(), draw_case(sizes, dtype, mask_kind), fast)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no-mask"])
@pytest.mark.parametrize("num_queries", [1, 3])
def test_the_fused_kernel_equals_the_reference(
    dtype: torch.dtype, num_queries: int, *, masked: bool
) -> None:
    """Beyond the keys that products serve, the fused kernel gives the same, blind rows too."""
    torch.manual_seed(0)
    case = draw_case((2, 2, num_queries, PRODUCT_KEYS + 1, 4), dtype)
    if masked:
        mask = torch.rand(2, 1, num_queries, PRODUCT_KEYS + 1) < 0.5
        mask[1, 0, 0] = False
        case = case._replace(mask=mask)
    assert_equals_reference(Full(), case, Full().attend)


@pytest.mark.parametrize(("device", "fused"), [("cpu", 0), ("meta", 1)])
@pytest.mark.parametrize("length", [5, BLOCK_QUERIES + 1])
def test_other_devices_run_the_fused_kernel(length: int, device: str, fused: int) -> None:
    """At once, where nothing differs by query; for few keys a CPU multiplies without it."""
    x_BHTd = torch.zeros(1, 2, length, 4, device=device)
    keys = torch.ones(1, 1, 1, length, dtype=torch.bool, device=device)
    for pattern, mask in ((Full(), None), (Full(), keys), (Causal(), None)):
        with FunctionCalls() as calls, torch.no_grad():
            pattern.attend(x_BHTd, KeyValue(x_BHTd, x_BHTd), mask, Scoring(scale=0.5))
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
    case = draw_case((1, 1, length, length, 2), torch.float64)
    assert_equals_reference(Causal(), case, Causal().attend)
