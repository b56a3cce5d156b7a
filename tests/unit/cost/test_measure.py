"""Predicting the sum of many times from some of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cost.measure import typical

TIMES = st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=40).map(np.array)


@given(TIMES)
def test_between_the_fastest_and_the_mean(times: np.ndarray) -> None:
    """It is no less than the fastest and no more than the mean, and scales as the times do."""
    found = typical(times)
    assert times.min() * (1 - 1e-12) <= found <= times.mean() * (1 + 1e-12)
    assert typical(3 * times) == pytest.approx(3 * found)


@given(st.lists(st.floats(0.8, 1.19), min_size=1, max_size=40).map(np.array))
def test_the_mean_of_ordinary_steps(times: np.ndarray) -> None:
    """Steps that are slow as steps are (up to 1.5 times the median) count in full."""
    assert typical(times) == pytest.approx(times.mean())


def test_a_burst_counts_little() -> None:
    """One step of forty that took a minute moves it as one of 1.5 medians would."""
    assert typical(np.array([1.0] * 39 + [60.0])) == pytest.approx((39 + 1.5) / 40)
