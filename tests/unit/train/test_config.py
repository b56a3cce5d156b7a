"""The settings of a training run."""

import re
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
        ({"max_steps": 9, "seed": 1 << 63}, "it must be less than 2^63"),
        ({"max_steps": 9, "weight_decay": 0.1}, 'weight_decay needs optimizer = "adamw"'),
    ],
)
def test_conflicts(options: dict[str, Any], message: str) -> None:
    """A run without an end, an invalid number or a conflict is reported in one sentence."""
    with pytest.raises(InputError, match=re.escape(message)):
        TrainConfig(**options)


@pytest.mark.parametrize(
    "options", [{"patience": 1, "schedule": "noam"}, {"max_steps": 1, "seed": (1 << 63) - 1}]
)
def test_what_must_work(options: dict[str, Any]) -> None:
    """Patience alone can end a run with a constant rate; the largest seed is valid."""
    assert all(getattr(TrainConfig(**options), name) == value for name, value in options.items())
