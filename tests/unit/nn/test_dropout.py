"""Laws of dropout."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.nn import Dropout


def kept_scale(p: float) -> float:
    """Return the scale of kept elements on a CPU, where p is a multiple of 1/256."""
    return 256 / (256 - min(255, max(1, round(p * 256))))


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.0, False), (0.1, False), (0.9, False)])
def test_without_chance_it_is_the_identity(p: float, *, training: bool) -> None:
    """Outside training, and if p = 0, the tensor is returned and no random number is drawn."""
    x, state = torch.randn(3, 4), torch.get_rng_state()
    assert Dropout(p).train(training)(x) is x
    assert torch.equal(torch.get_rng_state(), state)


@given(
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    st.lists(st.integers(0, 5), max_size=4),
)
def test_an_element_is_zero_or_scaled(p: float, dtype: torch.dtype, shape: list[int]) -> None:
    """Whatever the shape and p, each element is 0 or `x / (1 - p)`, and the dtype stays."""
    x = torch.ones(shape, dtype=dtype)
    y = Dropout(p)(x)
    scale = torch.tensor(kept_scale(p), dtype=dtype)
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert bool(((y == 0) | (y == scale)).all())


@pytest.mark.parametrize("p", [0.004, 0.1, 0.3, 0.5, 0.9])
def test_the_mean_is_kept(p: float) -> None:
    """The share of zeros is p and the mean is that of the input, within five standard errors."""
    torch.manual_seed(0)
    n = 200_000
    y = Dropout(p)(torch.ones(n, dtype=torch.float64))
    share = 1 - 1 / kept_scale(p)
    spread = math.sqrt(share * (1 - share) / n)
    assert abs(share - p) <= 0.5 / 256
    assert abs((y == 0).double().mean().item() - share) < 5 * spread
    assert abs(y.mean().item() - 1) < 5 * spread * kept_scale(p)


def test_neighbours_are_dropped_independently() -> None:
    """Whether an element was dropped says nothing about its neighbours."""
    torch.manual_seed(0)
    gone = (Dropout(0.5)(torch.ones(100_000)) == 0).double() - 0.5
    for lag in (1, 2, 7, 8, 64):
        assert abs((gone[lag:] * gone[:-lag]).mean().item()) < 0.25 * 5 / math.sqrt(100_000)


def test_the_gradient_uses_the_same_mask() -> None:
    """Backward scales the elements that forward kept and zeroes those that forward dropped."""
    x = torch.rand(50, 7, dtype=torch.float64).add_(1).requires_grad_()
    y = Dropout(0.4)(x)
    slopes = torch.randn_like(y)
    (grad,) = torch.autograd.grad(y, x, slopes)
    torch.testing.assert_close(grad, slopes * (y / x).detach())


@given(st.integers(0, 2**63 - 1))
@settings(max_examples=20)
def test_torchs_seed_decides(seed: int) -> None:
    """The same seed gives the same mask, and the next call another one."""
    dropout, x = Dropout(0.5), torch.ones(64)
    torch.manual_seed(seed)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(seed)
    assert torch.equal(dropout(x), first)
    assert torch.equal(dropout(x), second)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_no_probability_is_refused(p: float) -> None:
    """A number that is not a probability below 1 is an error that shows it."""
    with pytest.raises(ValueError, match=str(p)):
        Dropout(p)
