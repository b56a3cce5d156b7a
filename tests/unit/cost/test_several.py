"""What training on several devices takes: the ring's arithmetic, and what shows of it."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.cost.devices import device_named, device_table
from dragoman.cost.estimate import (
    HOP,
    SeveralEstimate,
    TrainingEstimate,
    estimate_several,
    estimate_training,
)
from dragoman.cost.machine import Rates, rates_of
from dragoman.cost.recipes import find_recipe
from dragoman.models import count_parameters
from dragoman.train.recipe import Work

FAST = 1e15
"""A link that takes no time, in bytes a second."""


@cache
def work_with(*overrides: str) -> Work:
    """A recipe of the preset base."""
    return find_recipe("base", overrides).work()


def rates() -> Rates:
    """Those of a GPU."""
    table = device_table()
    return rates_of(device_named("h100", table), table, "auto")


def several(work: Work, devices: int, link: float, rates: Rates) -> SeveralEstimate:
    """Estimate a step."""
    return estimate_several(work, rates, estimate_training(work, rates), devices, link)


@cache
def training_alone() -> TrainingEstimate:
    """Estimate a step on one device."""
    return estimate_training(work_with(), rates())


BYTES = 4 * sum(count_parameters(work_with().config).values())


@settings(max_examples=20)
@given(st.integers(1, 600), st.floats(1e8, 1e12))
def test_a_ring(devices: int, link: float) -> None:
    """All but the own part of the sum is sent, and again of the result; one device sends none."""
    alone = training_alone()
    found = estimate_several(work_with(), rates(), alone, devices, link)
    assert not found.sharded
    assert found.states == 4 * BYTES
    assert found.sent == pytest.approx(2 * (devices - 1) / devices * BYTES)
    assert found.communication_seconds == pytest.approx(found.sent / link + 2 * (devices - 1) * HOP)
    one = alone.step_seconds
    shown = max(0.0, found.communication_seconds - 2 / 3 * one)
    assert found.step_seconds == pytest.approx(one + shown)
    assert found.efficiency == pytest.approx(one / found.step_seconds)
    tokens = devices * work_with().step_tokens
    assert found.tokens_per_second == pytest.approx(tokens / found.step_seconds)


def test_accumulation_communicates_once_with_whole_models_only() -> None:
    """Whole models exchange a step's gradients; shards gather the weights for each batch."""
    for shard, times in (("off", 1), ("on", 3)):
        once, thrice = (
            several(work_with(f"train.shard={shard}", f"train.accumulate={k}"), 8, FAST, rates())
            for k in (1, 3)
        )
        assert thrice.sent == pytest.approx(times * once.sent)
        assert thrice.sharded == (shard == "on")


def test_shards_send_half_as_much_again_and_hold_a_part() -> None:
    """Two gatherings and a sum, in the place of one sum and one gathering."""
    whole, shares = (
        several(work_with(f"train.shard={shard}"), 8, FAST, rates()) for shard in ("off", "on")
    )
    assert shares.sent == pytest.approx(1.5 * whole.sent)
    assert shares.states == pytest.approx(whole.states / 8)


def test_shards_where_the_whole_is_too_large() -> None:
    """As training itself chooses: above half of the memory; one device has no others to share."""
    work = work_with()
    tight = replace(rates(), memory=8 * BYTES - 1)
    assert several(work, 2, FAST, tight).sharded
    assert not several(work, 1, FAST, tight).sharded
    assert not several(work, 2, FAST, replace(tight, memory=8 * BYTES)).sharded
    assert not several(work_with("train.shard=off"), 2, FAST, tight).sharded
