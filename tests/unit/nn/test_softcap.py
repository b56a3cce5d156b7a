"""The bound that bends."""

import torch

from dragoman.nn import soft_cap


def test_a_soft_cap_bends() -> None:
    """Small numbers stay, large ones come near the cap and not beyond; order and sign remain."""
    x_N = torch.tensor([-1e9, -40.0, -1e-3, 0.0, 1e-3, 20.0, 40.0, 1e9], dtype=torch.float64)
    y_N = soft_cap(x_N, 30.0)
    torch.testing.assert_close(y_N[2:5], x_N[2:5], rtol=1e-8, atol=0)
    assert y_N.abs().max() == 30.0
    assert y_N.equal(y_N.sort().values)
    assert y_N[5] == 30 * torch.tanh(torch.tensor(20 / 30, dtype=torch.float64))


def test_no_cap_is_no_operation() -> None:
    """The very tensor comes back."""
    x = torch.randn(3)
    assert soft_cap(x, None) is x
