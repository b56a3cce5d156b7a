"""The learning rate over a run; Adam and its state as named tensors."""

import math
from dataclasses import replace
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.train.made import CONFIG, make_batch, make_model, make_stepper, random_pairs

from dragoman.train.config import TrainConfig
from dragoman.train.optimizer import learning_rate, load_optimizer_tensors, optimizer_tensors

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
    """Each schedule falls by its formula."""
    assert rate("inverse-sqrt", 4 * WARMUP) == pytest.approx(PEAK / 2)
    assert rate("constant", 10**6, 0.9) == PEAK
    assert rate("linear", 10**4, 0.75) == pytest.approx(PEAK / 4)
    assert rate("cosine", 10**4, 0.5) == pytest.approx(PEAK / 2)
    assert rate("cosine", 10**4, 1 / 3) == pytest.approx(PEAK * (1 + math.cos(math.pi / 3)) / 2)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("done", [1.0, 1.001])
def test_decays_reach_zero(schedule: str, done: float) -> None:
    """Linear and cosine are 0 at the end of the run, and not below it past the end."""
    assert rate(schedule, 10**4, done) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("schedule", ["noam", "inverse-sqrt", "cosine", "linear", "constant"])
def test_no_warm_up(schedule: str) -> None:
    """Without a warm-up the first step has the peak, and nothing is divided by zero."""
    expected = PEAK / math.sqrt(D) if schedule == "noam" else PEAK
    assert rate(schedule, 1, warmup=0) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_state_round_trip(kind: Literal["adam", "adamw"]) -> None:
    """State saved by name and put into a new optimizer makes the next step the same to the bit."""
    config = replace(CONFIG, optimizer=kind, weight_decay=0.01 if kind == "adamw" else 0.0)
    model = make_model(dtype=torch.float32)
    stepper = make_stepper(model, config)
    for _ in range(3):
        stepper([make_batch(random_pairs(5))], 1e-2)
    again = make_model(dtype=torch.float32)
    again.load_state_dict(model.state_dict())
    other = make_stepper(again, config)
    saved = {k: v.clone() for k, v in optimizer_tensors(stepper.optimizer, model).items()}
    load_optimizer_tensors(other.optimizer, again, saved)
    batch = make_batch(random_pairs(5))
    stepper([batch], 1e-2)
    other([batch], 1e-2)
    for ours, theirs in zip(again.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_state_is_named_by_parameter_and_moment() -> None:
    """Each parameter has its step count and its two moments, under its own name, once."""
    model = make_model()
    stepper = make_stepper(model)
    stepper([make_batch(random_pairs(5))], 1e-2)
    names = {name for name, _ in model.named_parameters()}
    expected = {f"{name}/{key}" for name in names for key in ("step", "exp_avg", "exp_avg_sq")}
    assert set(optimizer_tensors(stepper.optimizer, model)) == expected


def test_adam_of_the_paper() -> None:
    """The first step of Adam moves each weight by the rate, against the sign of its gradient."""
    model = make_model()
    before = [p.detach().clone() for p in model.parameters()]
    stepper = make_stepper(model)
    group = stepper.optimizer.param_groups[0]
    assert group["betas"] == (0.9, 0.98)
    assert group["eps"] == 1e-9
    stepper([make_batch(random_pairs(5))], 1e-3)
    moved = [
        (p - old).abs().max().item() for p, old in zip(model.parameters(), before, strict=True)
    ]
    assert max(moved) == pytest.approx(1e-3, rel=1e-3)
