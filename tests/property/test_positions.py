"""Laws of sinusoidal positions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.nn import SinusoidalPositions, sinusoidal_table

EVEN = st.integers(1, 40).map(lambda half: 2 * half)


@given(EVEN, st.integers(1, 8), st.integers(0, 100), st.integers(1, 30), st.integers(1, 60))
@settings(max_examples=60)
def test_a_grown_table_is_a_table_made_long(
    d_model: int, initial: int, offset: int, length: int, later: int
) -> None:
    """A length never seen before works, and growing changes no row."""
    positions = SinusoidalPositions(d_model, initial_length=initial)
    table = sinusoidal_table(offset + length + later, d_model)
    for end in (length, length + later, length):
        got = positions(
            torch.zeros(2, end, d_model, dtype=torch.float64), range(offset, offset + end)
        )
        assert torch.equal(got, table[offset : offset + end].expand(2, -1, -1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_positions_follow_the_vectors(dtype: torch.dtype) -> None:
    """The table is as exact as the dtype of the vectors, whatever was computed before."""
    positions = SinusoidalPositions(6)
    for before in (torch.bfloat16, torch.float64, torch.float32):
        assert positions(torch.zeros(1, 3, 6, dtype=before)).dtype == before
    got = positions(torch.zeros(1, 9, 6, dtype=dtype), range(300, 309))
    assert got.dtype == dtype
    assert torch.equal(got[0], sinusoidal_table(309, 6)[300:].to(dtype))


def test_positions_are_no_weights() -> None:
    """They are in no checkpoint and no optimizer."""
    positions = SinusoidalPositions(6)
    assert not positions.state_dict()
    assert not list(positions.parameters())


def test_a_table_grown_without_gradients_serves_training() -> None:
    """Inference may grow the table, and training continues with it."""
    positions = SinusoidalPositions(6, initial_length=1)
    with torch.inference_mode():
        positions(torch.zeros(1, 9, 6))
    x = torch.zeros(1, 9, 6, requires_grad=True)
    positions(x).square().sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad[0], 2 * sinusoidal_table(9, 6).float())


def test_an_odd_width_is_refused() -> None:
    """Sines and cosines come in pairs."""
    with pytest.raises(ValueError, match="even d_model, not 5"):
        sinusoidal_table(3, 5)
