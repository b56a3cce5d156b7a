"""What is said of a run before it begins."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.cost.test_estimate import RATES

from dragoman.cost.forecast import forecast
from dragoman.cost.recipes import find_recipe
from dragoman.train.config import TrainConfig


@pytest.mark.parametrize(
    ("train", "offered"),
    [
        (TrainConfig(max_steps=10**7), True),
        (TrainConfig(max_steps=10**7, max_minutes=600), False),
        (TrainConfig(max_steps=1), False),
    ],
    ids=["long", "long-with-minutes", "short"],
)
def test_a_long_run_can_be_ended_sooner(
    tmp_path: Path, train: TrainConfig, *, offered: bool
) -> None:
    """The setting that does so is named where the recipe has no limit of time."""
    recipe = find_recipe("numbers", (f"out={tmp_path / 'run'}",))
    said, _ = forecast(replace(recipe, train=train))
    assert any("train.max_minutes=30" in line for line in said) is offered


@pytest.mark.parametrize(
    ("name", "minutes", "told"),
    [("numbers", 0.5, True), ("numbers", 10**6, False), ("stories", 0.5, False)],
    ids=["short", "enough", "no-steps-planned"],
)
def test_a_clock_that_cannot_reach_is_told_beforehand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, minutes: float, *, told: bool
) -> None:
    """How many of the planned steps the time allows, and how long all of them take."""
    recipe = find_recipe(name, (f"out={tmp_path / 'run'}", f"train.max_minutes={minutes}"))
    monkeypatch.setattr("dragoman.cost.forecast.find_rates", lambda _: RATES)
    said = "\n".join(forecast(recipe)[0])
    assert ("of 8,000 steps; all of them take about" in said) is told
    assert ("train.max_minutes allows about" in said) is told
    assert ("about 30 s for" in said) is (minutes == 0.5)  # and not more than it may take
    if told:
        free = find_recipe(name, (f"out={tmp_path / 'run'}", "train.max_minutes=1000000"))
        taken, _, _ = forecast(free)[0][0].partition(" for 8,000 steps")
        assert f"all of them take {taken.partition(': ')[2]}." in said
