"""Linear attention: its scan against the formula, and its three forms against each other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parity.attention_cases import LINEAR, assert_equals_reference, draw_case

from dragoman.nn import KeyValue, LinearAttention, Scoring, reference_attention
from dragoman.nn.patterns.linear import phi


@given(LINEAR, st.data(), st.sampled_from([20, 300]))
@settings(max_examples=150)
def test_the_scan_equals_the_formula(
    pattern: LinearAttention, data: st.DataObject, longest: int
) -> None:
    """Outputs and gradients agree, with and without decay, T <= S, with any mask, shared heads."""
    case = draw_case(data, longest=longest, of_keys=longest > 20, kv_heads=2)
    scoring = Scoring(scale=case.scoring.scale)
    assert_equals_reference(pattern, case._replace(scoring=scoring), pattern.attend)


def test_weights_fall_by_the_decay_and_sum_to_one() -> None:
    """With equal queries and keys weights are proportional to `gamma^(i-j)` and sum to 1."""
    x = torch.zeros(1, 1, 4, 2).double()
    pattern = LinearAttention(decay=(0.5,))
    mask = pattern.mask(4, 4, x.device)
    _, weights = pattern.reference(x, KeyValue(x, x), mask, Scoring(scale=1.0))
    wanted = torch.tensor(
        [[1.0, 0, 0, 0], [0.5, 1, 0, 0], [0.25, 0.5, 1, 0], [0.125, 0.25, 0.5, 1]]
    )
    wanted = wanted / wanted.sum(-1, keepdim=True)
    torch.testing.assert_close(weights[0, 0], wanted.double())


def test_the_softmax_is_the_same_formula_with_another_kernel() -> None:
    """`w_ij = exp(q_i . k_j)` instead of `phi(q_i) . phi(k_j)` is the paper's attention."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 5, 3).double() for _ in range(3))
    softmax, _ = reference_attention(q, k, v, None, Scoring(scale=1.0))
    linear = LinearAttention(causal=False)
    sums, _ = linear.reference(q, KeyValue(k, v), None, Scoring(scale=1.0))
    for kernel, expected in ((torch.exp(q @ k.mT), softmax), (phi(q) @ phi(k).mT, sums)):
        torch.testing.assert_close(kernel @ v / kernel.sum(-1, keepdim=True), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_sums_in_full(dtype: torch.dtype) -> None:
    """In a long text of equal keys a half-precision sum would stop growing."""
    q = k = torch.zeros(1, 1, 3000, 4, dtype=dtype)
    v = torch.arange(3000.0).view(1, 1, -1, 1).expand(1, 1, 3000, 4) / 3000
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = LinearAttention().attend(q, KeyValue(k, v.to(dtype)), None, Scoring(scale=1.0))
    assert out.dtype == dtype
    assert abs(out[0, 0, -1, 0].item() - 0.5) < 0.005


def test_autocast_does_not_reach_its_sums() -> None:
    """Float32 inputs are summed in float32, with the same bits as without autocast."""
    q, k, v = torch.randn(3, 1, 2, 40, 8)
    alone = LinearAttention().attend(q, KeyValue(k, v), None, Scoring(scale=1.0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = LinearAttention().attend(q, KeyValue(k, v), None, Scoring(scale=1.0))
    assert torch.equal(alone, inside)


def test_what_it_cannot_do_is_refused() -> None:
    """A soft-cap, a bias or dropout would be silently ignored."""
    x = torch.zeros(1, 1, 2, 2)
    with pytest.raises(ValueError, match="no scores"):
        LinearAttention().attend(x, KeyValue(x, x), None, Scoring(scale=1.0, soft_cap=1.0))
