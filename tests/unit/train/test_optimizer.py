"""Adam and its state as named tensors."""

from dataclasses import replace
from typing import Literal

import pytest
import torch
from tests.unit.train.made import CONFIG, make_batch, make_model, make_stepper, random_pairs

from dragoman.train.optimizer import (
    load_optimizer_tensors,
    make_optimizer,
    optimizer_tensors,
)


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


def test_only_matrices_decay() -> None:
    """Weight decay is for matrices: biases and norms have none."""
    model = make_model()
    optimizer = make_optimizer(model, replace(CONFIG, optimizer="adamw", weight_decay=0.1))
    groups = optimizer.param_groups
    decays = {id(p): g["weight_decay"] for g in groups for p in g["params"]}
    assert all(decays[id(p)] == (0.1 if p.dim() > 1 else 0.0) for p in model.parameters())


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
