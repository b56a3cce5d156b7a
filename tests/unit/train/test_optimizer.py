"""The learning rate over a run."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.train.config import TrainConfig
from dragoman.train.optimizer import learning_rate

PEAK, WARMUP, D = 3e-3, 200, 512


def rate(schedule: str, step: int, done: float = 0.0, warmup: int = WARMUP) -> float:
    """The rate of one step."""
    config = TrainConfig(
        max_steps=1000,
        learning_rate=PEAK,
        warmup_steps=warmup,
        schedule=schedule,  # type: ignore[arg-type]
    )
    return learning_rate(config, step, done, D)


@given(step=st.integers(1, 10**6), warmup=st.integers(1, 10**5), factor=st.floats(0.1, 3))
def test_noam_is_the_formula_of_the_paper(step: int, warmup: int, factor: float) -> None:
    """Noam is `factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)` at every step."""
    config = TrainConfig(max_steps=1, learning_rate=factor, warmup_steps=warmup, schedule="noam")
    expected = factor * D**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert learning_rate(config, step, 0.5, D) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "linear", "constant"])
def test_warm_up_is_a_straight_line_to_the_peak(schedule: str) -> None:
    """The first step has 1 / warmup of the peak, half of the warm-up a half, its last step all."""
    assert rate(schedule, 1) == pytest.approx(PEAK / WARMUP)
    assert rate(schedule, WARMUP // 2) == pytest.approx(PEAK / 2)
    assert rate(schedule, WARMUP) == pytest.approx(PEAK)


def test_after_the_warm_up() -> None:
    """Each schedule falls by its formula, not below 0 past the end of the run."""
    assert rate("inverse-sqrt", 4 * WARMUP) == pytest.approx(PEAK / 2)
    assert rate("constant", 10**6, 0.9) == PEAK
    assert rate("linear", 10**4, 0.75) == pytest.approx(PEAK / 4)
    assert rate("cosine", 10**4, 0.5) == pytest.approx(PEAK / 2)
    assert rate("cosine", 10**4, 1 / 3) == pytest.approx(PEAK * (1 + math.cos(math.pi / 3)) / 2)
    for schedule in ("linear", "cosine"):
        assert rate(schedule, 10**4, 1.0) == pytest.approx(0.0, abs=1e-15)
        assert rate(schedule, 10**4, 1.001) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("schedule", ["noam", "inverse-sqrt", "cosine", "linear", "constant"])
def test_no_warm_up(schedule: str) -> None:
    """Without a warm-up the first step has the peak, and nothing is divided by zero."""
    expected = PEAK / math.sqrt(D) if schedule == "noam" else PEAK
    assert rate(schedule, 1, warmup=0) == pytest.approx(expected)
