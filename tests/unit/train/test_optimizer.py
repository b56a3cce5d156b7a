"""The learning rate over a run."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.train.config import TrainConfig
from dragoman.train.optimizer import learning_rate

D = 512
FORMULAS: dict[str, Callable[[float, float, float], float]] = {
    "noam": lambda step, warmup, _: D**-0.5 * min(step**-0.5, step * warmup**-1.5),
    "inverse-sqrt": lambda step, warmup, _: min(step / warmup, (warmup / step) ** 0.5),
    "cosine": lambda step, warmup, done: min(1, step / warmup) * math.cos(math.pi * done / 2) ** 2,
    "linear": lambda step, warmup, done: min(1, step / warmup) * (1 - done),
    "constant": lambda step, warmup, _: min(1, step / warmup),
}
"""For a peak of 1: by the step, the steps of the warm-up, and how much of the run is over."""


@pytest.mark.parametrize("schedule", FORMULAS)
@given(
    step=st.integers(1, 10**6),
    warmup=st.integers(0, 10**5),
    peak=st.floats(0.1, 3),
    done=st.floats(0, 1.5),
)
def test_each_schedule_is_its_formula(
    schedule: Any,  # noqa: ANN401 (one of the names)
    step: int,
    warmup: int,
    peak: float,
    done: float,
) -> None:
    """Without a warm-up the first step has the peak; past the end of the run nothing is below 0."""
    config = TrainConfig(max_steps=1, learning_rate=peak, warmup_steps=warmup, schedule=schedule)
    wanted = peak * FORMULAS[schedule](step, max(1, warmup), min(1.0, done))
    assert learning_rate(config, step, done, D) == pytest.approx(wanted, rel=1e-9, abs=1e-15)
