"""Compiled code for training computes what PyTorch computes."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_compiler, without_compiler
from torch import Tensor

from dragoman.nn.cpu.cross_entropy import cross_entropy, cross_entropy_with_gradient
from dragoman.nn.cpu.elementwise import Dropout

pytestmark = needs_compiler
PART = 16_384  # of a long row, as in native.c
SEEDS = st.integers(0, 2**31)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def dropped(x: Tensor, p: float, seed: int) -> list[Tensor]:
    """Return the results of dropout for a tensor, and for a gradient with the same numbers."""
    torch.manual_seed(seed)
    leaf = x.clone().requires_grad_()
    dropout = Dropout(p)
    out = dropout(leaf)
    (grad,) = torch.autograd.grad(out, leaf, x)
    return [out.detach(), grad]


@DTYPES
@given(SEEDS, st.integers(1, 90), st.integers(1, 500), st.floats(0.01, 0.99))
@settings(max_examples=30, deadline=None)
def test_dropout_has_the_bits_of_torch(
    dtype: torch.dtype, seed: int, rows: int, columns: int, p: float
) -> None:
    """Forward and backward, also of a transposed tensor and in more parts than one."""
    torch.manual_seed(seed)
    x = (torch.randn(rows, columns) * torch.randn(rows, 1).exp()).to(dtype)
    for each in (x, x.T, x.new_empty(0, 3)):
        fast = dropped(each, p, seed)
        with without_compiler():
            slow = dropped(each, p, seed)
        assert all(torch.equal(a, b) for a, b in zip(fast, slow, strict=True))


def test_dropout_of_many_numbers_by_several_threads() -> None:
    """No part is skipped or processed twice, and non-finite numbers are unchanged."""
    x = torch.randn(7 * PART + 5)
    x[::1001] = float("nan")
    out, _ = dropped(x, 0.3, 1)
    with without_compiler():
        expected, _ = dropped(x, 0.3, 1)
    assert torch.equal(out.nan_to_num(77.0), expected.nan_to_num(77.0))


@DTYPES
@given(SEEDS, st.integers(1, 40), st.integers(2, 3000), st.sampled_from([0.0, 0.1, 0.5]))
@settings(max_examples=30, deadline=None)
def test_cross_entropy_is_that_of_torch(
    dtype: torch.dtype, seed: int, rows: int, columns: int, smoothing: float
) -> None:
    """Loss and gradient agree with torch in float64; without a gradient the loss has its bits."""
    torch.manual_seed(seed)
    logits = (torch.randn(rows, columns) * torch.randn(rows, 1).mul(2).exp()).to(dtype)
    targets = torch.randint(columns, (rows,))
    exact = logits.double().requires_grad_()
    expected = F.cross_entropy(exact, targets, label_smoothing=smoothing, reduction="sum")
    expected.backward()
    alone = cross_entropy(logits, targets, smoothing)
    loss, grad = cross_entropy_with_gradient(logits.clone(), targets, smoothing)
    assert torch.equal(alone, loss)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-4)
    assert exact.grad is not None
    tolerance = 2.0**-8 if dtype is torch.bfloat16 else 5e-6
    torch.testing.assert_close(grad.double(), exact.grad, rtol=tolerance, atol=tolerance / 2)
    assert grad.dtype is dtype


@DTYPES
def test_rows_do_not_depend_on_each_other(dtype: torch.dtype) -> None:
    """A position's gradient is the same alone and among others, with one thread and with two."""
    logits, targets = torch.randn(300, 999).to(dtype), torch.randint(999, (300,))
    _, together = cross_entropy_with_gradient(logits.clone(), targets, 0.1)
    for row in (0, 7, 299):
        alone = logits[row : row + 1].clone()
        assert torch.equal(
            cross_entropy_with_gradient(alone, targets[row : row + 1], 0.1)[1][0], together[row]
        )


@DTYPES
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_seen(dtype: torch.dtype, value: float) -> None:
    """One such logit makes the loss non-finite, which stops a run."""
    logits = torch.randn(5, 100).to(dtype)
    logits[3, 17] = value
    assert not cross_entropy(logits, torch.arange(5), 0.1).isfinite()


@pytest.mark.parametrize("target", [-1, 10])
def test_a_target_outside_of_the_vocabulary(target: int) -> None:
    """Nothing is written outside the logits."""
    with pytest.raises(IndexError, match="one of the 10 tokens"):
        cross_entropy_with_gradient(torch.randn(2, 10), torch.tensor([0, target]), 0.1)
