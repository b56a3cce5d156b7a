"""The options of a training run."""

import math
import re
from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from dragoman.errors import InputError
from dragoman.train.config import TrainConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a run needs an end: set max_steps, max_minutes or patience"),
        ({"patience": 3}, 'schedule = "linear" falls to 0'),
        ({"patience": 3, "schedule": "cosine"}, 'schedule = "cosine" falls to 0'),
        ({"max_steps": 0}, "max_steps is 0; it must be at least 1"),
        ({"max_steps": 9, "patience": 0}, "patience is 0; it must be at least 1"),
        ({"max_minutes": 0.0}, "max_minutes is 0.0; it must be above 0"),
        ({"max_steps": 9, "save_every": 0}, "save_every is 0; it must be at least 1"),
        ({"max_steps": 9, "accumulate": 0}, "accumulate is 0; it must be at least 1"),
        ({"max_steps": 9, "average_last": 0}, "average_last is 0; it must be at least 1"),
        ({"max_steps": 9, "learning_rate": 0.0}, "learning_rate is 0.0; it must be above 0"),
        ({"max_steps": 9, "clip_norm": 0.0}, "clip_norm is 0.0; it must be above 0"),
        ({"max_steps": 9, "beta2": 1.0}, "beta2 is 1.0; it must be at least 0 and below 1"),
        (
            {"max_steps": 9, "label_smoothing": 1.0},
            "label_smoothing is 1.0; it must be at least 0 and below 1",
        ),
        ({"max_steps": 9, "warmup_steps": -1}, "warmup_steps is -1; it must be at least 0"),
        ({"max_steps": 9, "seed": -1}, "seed is -1; it must be at least 0"),
        ({"max_steps": 9, "seed": 1 << 63}, "it must be less than 2^63"),
        ({"max_steps": 9, "weight_decay": 0.1}, 'weight_decay needs optimizer = "adamw"'),
    ],
)
def test_conflicts(options: dict[str, Any], message: str) -> None:
    """A run without an end, a number that means nothing and a conflict are each one sentence."""
    with pytest.raises(InputError, match=re.escape(message)):
        TrainConfig(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"max_steps": 1},
        {"max_steps": 1, "seed": 0},
        {"max_steps": 1, "seed": (1 << 63) - 1},
        {"max_minutes": 0.1, "schedule": "cosine"},
        {"patience": 1, "schedule": "noam"},
        {"max_steps": 9, "optimizer": "adamw", "weight_decay": 0.1, "clip_norm": None},
        {"max_steps": 9, "metric": "loss", "validate_limit": 0, "warmup_steps": 0},
    ],
)
def test_what_must_work(options: dict[str, Any]) -> None:
    """Each kind of end, and the edges of each range, are accepted."""
    assert all(getattr(TrainConfig(**options), name) == value for name, value in options.items())


def test_no_number_is_infinite() -> None:
    """Neither infinity (1e400 is one) nor NaN is taken for any number."""
    numbers = [f.name for f in fields(TrainConfig) if "float" in str(f.type)]
    assert len(numbers) == 10
    for name, value in product(numbers, (math.inf, -math.inf, math.nan)):
        with pytest.raises(InputError, match=f"{name} is {value}; it must be"):
            TrainConfig(**{"max_steps": 9, "optimizer": "adamw", name: value})  # type: ignore[arg-type]
