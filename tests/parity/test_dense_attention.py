"""The fast paths of dense attention against the readable reference, forward and backward."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.calls import FunctionCalls
from tests.parity.attention_cases import TOLERANCES, Case, assert_equals_reference, draw_case
from torch import Tensor

from dragoman.nn import Causal, Dropout, Full, KeyValue, Scoring
from dragoman.nn.cpu.attention import BLOCK_QUERIES, PRODUCT_KEYS, fused_attention


def case_of(dtype: torch.dtype, num_queries: int, num_keys: int, rows: int = 1) -> Case:
    """Draw two heads of 4, scaled as in the paper: `1 / sqrt(d)`."""
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(rows, 2, length, 4, dtype=dtype, requires_grad=True)
        for length in (num_queries, num_keys, num_keys)
    )
    return Case((q, k, v), None, Scoring(scale=0.5))


@pytest.mark.parametrize("fast", [Full().attend, fused_attention], ids=["products", "fused"])
@given(st.data())
@settings(max_examples=100)
def test_dense_attention_equals_the_reference(
    fast: Callable[..., Tensor], data: st.DataObject
) -> None:
    """This holds at any lengths, including T = 1, S = 1, T > S and fully blind rows."""
    case = draw_case(data, longest=40, longest_query=9)
    case = case._replace(scoring=Scoring(scale=case.scoring.scale))
    assert_equals_reference(Full(), case, fast)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no-mask"])
@pytest.mark.parametrize("num_queries", [1, 3])
def test_the_fused_kernel_equals_the_reference(
    dtype: torch.dtype, num_queries: int, *, masked: bool
) -> None:
    """For more keys than products serve, the fused kernel gives the same, blind rows too."""
    case = case_of(dtype, num_queries, PRODUCT_KEYS + 1, rows=2)
    if masked:
        mask = torch.rand(2, 1, num_queries, PRODUCT_KEYS + 1) < 0.5
        mask[1, 0, 0] = False
        case = case._replace(mask=mask)
    assert_equals_reference(Full(), case, Full().attend)


@pytest.mark.parametrize(("device", "fused"), [("cpu", 0), ("meta", 1)])
@pytest.mark.parametrize("length", [5, BLOCK_QUERIES + 1])
def test_other_devices_run_the_fused_kernel(length: int, device: str, fused: int) -> None:
    """At any length, unless a mask differs by query; for few keys a CPU uses products instead."""
    x_BHTd = torch.zeros(1, 2, length, 4, device=device)
    keys = torch.ones(1, 1, 1, length, dtype=torch.bool, device=device)
    for pattern, mask in ((Full(), None), (Full(), keys), (Causal(), None)):
        with FunctionCalls() as calls, torch.no_grad():
            pattern.attend(x_BHTd, KeyValue(x_BHTd, x_BHTd), mask, Scoring(scale=0.5))
        called = [call.function for call in calls.seen]
        assert called.count(F.scaled_dot_product_attention) == fused


def test_dropout_takes_whole_weights() -> None:
    """Dropout on the weights removes keys; the rest is scaled by 1 / (1 - p)."""
    torch.manual_seed(0)
    q, k = torch.zeros(1, 1, 4000, 2), torch.zeros(1, 1, 2, 2)
    v = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    out = Full().attend(q, KeyValue(k, v), None, Scoring(scale=1.0, dropout=Dropout(0.5)))
    assert out.unique().tolist() == [0.0, 1.0]
    assert abs(out.mean().item() - 0.5) < 0.03


def test_long_causal_attention_needs_no_mask() -> None:
    """At these lengths the fused kernel's own causal pattern agrees with the reference."""
    case = case_of(torch.float64, PRODUCT_KEYS + 3, PRODUCT_KEYS + 3)
    assert_equals_reference(Causal(), case, Causal().attend)
