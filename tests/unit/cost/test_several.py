"""Training on several devices: the cost of communication, and how it is reported."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.cost.devices import device_named, device_table
from dragoman.cost.estimate import HOP, SeveralEstimate, estimate_several, estimate_training
from dragoman.cost.machine import Rates, rates_of
from dragoman.cost.recipes import find_recipe
from dragoman.models import count_parameters
from dragoman.train.recipe import Work


@cache
def work_with(*overrides: str) -> Work:
    """Return the work of a recipe with the preset tiny."""
    return find_recipe("tiny", overrides).work()


@cache
def rates() -> Rates:
    """Return the rates of a GPU."""
    table = device_table()
    return rates_of(device_named("h100", table), table, "auto")


def several(work: Work, devices: int, link: float, rates: Rates) -> SeveralEstimate:
    """Estimate a training step."""
    return estimate_several(work, rates, estimate_training(work, rates), devices, link)


BYTES = 4 * sum(count_parameters(work_with().config).values())


@settings(max_examples=30)
@given(
    devices=st.integers(1, 600),
    link=st.floats(1e8, 1e12),
    shard=st.sampled_from(["off", "on"]),
    accumulate=st.sampled_from([1, 3]),
)
def test_a_ring(devices: int, link: float, shard: str, accumulate: int) -> None:
    """All but the own part is sent: of the sum and of the result, once in a step of whole models.

    Shards gather the weights twice for each batch, sum its gradients, and hold a part of the model.
    One device sends none.
    """
    work = work_with(f"train.shard={shard}", f"train.accumulate={accumulate}")
    found = several(work, devices, link, rates())
    one = estimate_training(work, rates()).step_seconds
    assert found.sharded == (shard == "on" and devices > 1)
    rounds, hidden = (3 * accumulate, one) if found.sharded else (2, 2 / 3 * one / accumulate)
    assert found.states == pytest.approx(4 * BYTES / (devices if found.sharded else 1))
    assert found.sent == pytest.approx(rounds * (devices - 1) / devices * BYTES)
    assert found.communication_seconds == pytest.approx(
        found.sent / link + rounds * (devices - 1) * HOP
    )
    assert found.step_seconds == pytest.approx(one + max(0.0, found.communication_seconds - hidden))
    assert found.efficiency == pytest.approx(one / found.step_seconds)
    assert found.tokens_per_second == pytest.approx(devices * work.step_tokens / found.step_seconds)


def test_shards_where_the_whole_is_too_large() -> None:
    """Shards are chosen as in training: above half of the memory, and with several devices."""
    work = work_with()
    tight = replace(rates(), memory=8 * BYTES - 1)
    assert several(work, 2, 1e15, tight).sharded
    assert not several(work, 1, 1e15, tight).sharded
    assert not several(work, 2, 1e15, replace(tight, memory=8 * BYTES)).sharded
    assert not several(work_with("train.shard=off"), 2, 1e15, tight).sharded
