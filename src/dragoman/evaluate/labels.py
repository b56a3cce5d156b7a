r"""How often labels are right.

With :math:`tp` texts that have a label and get it, :math:`fp` that get it without having it, and
:math:`fn` that have it without getting it,

.. math:: P = \frac{tp}{tp + fp} \quad R = \frac{tp}{tp + fn} \quad F_1 = \frac{2 P R}{P + R}

and 0 where nothing is divided by nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dragoman.errors import InputError
from dragoman.plain import Plain

__all__ = ["LabelScores", "Measures", "check_same_length", "label_scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """How well one kind is found. All in percent but the count."""

    precision: float
    """Of those that were found, how many are right."""
    recall: float
    """Of those that are there, how many were found."""
    f1: float
    """The harmonic mean of both."""
    count: int
    """How many are there."""

    @classmethod
    def of(cls, *, correct: int, found: int, there: int) -> Self:
        """From the three counts."""
        return cls(
            precision=100 * correct / max(1, found),
            recall=100 * correct / max(1, there),
            f1=100 * 2 * correct / max(1, found + there),
            count=there,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScores(Plain):
    """What a classifier is worth on a test set."""

    accuracy: float
    """Texts that get their label, in percent."""
    macro_f1: float
    """The mean F1 of the labels, however rare they are."""
    majority: float
    """The accuracy of giving every text the label that is most frequent here."""
    labels: Mapping[str, Measures]
    """Each label by itself, in alphabetical order."""


def label_scores(right: Sequence[str], predicted: Sequence[str]) -> LabelScores:
    """Compare the label that each text has with the one that it gets.

    Raises InputError when the two differ in length or there is nothing to compare.
    """
    check_same_length(right, predicted, "texts")
    there, found = Counter(right), Counter(predicted)
    correct = Counter(a for a, b in zip(right, predicted, strict=True) if a == b)
    labels = {
        label: Measures.of(correct=correct[label], found=found[label], there=there[label])
        for label in sorted(there | found)
    }
    return LabelScores(
        accuracy=100 * correct.total() / len(right),
        macro_f1=_mean(measures.f1 for measures in labels.values()),
        majority=100 * max(there.values()) / len(right),
        labels=labels,
    )


def check_same_length(right: Sequence[object], predicted: Sequence[object], what: str) -> None:
    """Raise InputError unless there is something to compare on both sides."""
    if len(right) != len(predicted):
        raise InputError(
            f"There are {len(right)} {what} and answers for {len(predicted)}; answer n must belong "
            f"to number n of the {what}."
        )
    if not right:
        raise InputError(f"There is nothing to evaluate: no {what} in the input.")


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
