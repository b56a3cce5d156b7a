"""The options of a training run."""

import math
import re
from dataclasses import fields
from itertools import chain, product
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


def test_every_number_has_a_range() -> None:
    """Neither infinity (1e400 is one) nor NaN is taken for any number; no count is negative."""
    numbers = [f.name for f in fields(TrainConfig) if "float" in str(f.type)]
    counts = [f.name for f in fields(TrainConfig) if "int" in str(f.type)]
    assert (len(numbers), len(counts)) == (10, 11)
    pairs = product(numbers, (math.inf, -math.inf, math.nan))
    for name, value in chain(pairs, product(counts, (-1,))):
        with pytest.raises(InputError, match=f"{name} is {value}; it must be"):
            TrainConfig(**{"max_steps": 9, "optimizer": "adamw", name: value})  # type: ignore[arg-type]
