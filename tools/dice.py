"""Random choices for the generators of the corpora."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Random choices that are the same on every platform and in every version of Python.

    They come from `Random.random()` alone, the one stream that Python promises to keep.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each as likely as the others."""
        return options[int(self.random() * len(options))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def number(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int(self.random() * (high - low + 1))
