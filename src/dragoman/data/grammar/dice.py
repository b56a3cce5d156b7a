"""Random choices that are the same on every platform and in every version of Python."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Choices from ``Random.random()`` alone, the one stream that Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all alike."""
        return options[int(self._random() * len(options))]

    def weighted(self, options: Sequence[tuple[T, float]]) -> T:
        """One of the options, by weight."""
        limits = list(accumulate(weight for _, weight in options))
        return options[bisect(limits, self._random() * limits[-1])][0]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))
