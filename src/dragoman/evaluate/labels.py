r"""How often labels are right, and how many tagged spans of words are found.

With :math:`tp` texts that have a label and get it, :math:`fp` that get it without having it, and
:math:`fn` that have it without getting it,

.. math:: P = \frac{tp}{tp + fp} \quad R = \frac{tp}{tp + fn} \quad F_1 = \frac{2 P R}{P + R}

and 0 where nothing is divided by nothing. The same for spans, counted by nervaluate: a span is
right when its first word, its last word and its type are, which is the rule of the CoNLL shared
tasks (Tjong Kim Sang and De Meulder, 2003, section 2.2), and what nervaluate calls strict.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

from nervaluate.entities import EvaluationResult
from nervaluate.evaluator import Evaluator

from dragoman.data.tagged import detect_scheme
from dragoman.errors import InputError
from dragoman.plain import Plain
from dragoman.wording import counted


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
    _check_same_length(right, predicted, "texts")
    there, found = Counter(right), Counter(predicted)
    correct = Counter(a for a, b in zip(right, predicted, strict=True) if a == b)
    labels = {
        label: Measures.of(correct=correct[label], found=found[label], there=there[label])
        for label in sorted(there | found)
    }
    return LabelScores(
        accuracy=100 * correct.total() / len(right),
        macro_f1=sum(each.f1 for each in labels.values()) / len(labels),
        majority=100 * max(there.values()) / len(right),
        labels=labels,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagScores(Plain):
    """What a tagger is worth on a test set."""

    accuracy: float
    """Words that get their tag, in percent."""
    spans: Measures | None
    """All spans together; None where tags stand for single words."""
    types: Mapping[str, Measures]
    """Each type of span by itself, in alphabetical order."""

    @property
    def figures(self) -> dict[str, float]:
        """The figures of all together by name: what training validates by."""
        figures = {"accuracy": self.accuracy}
        if self.spans is not None:
            spans = self.spans
            figures |= {"f1": spans.f1, "precision": spans.precision, "recall": spans.recall}
        return figures


def tag_scores(right: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> TagScores:
    """Compare the tags of each sentence, spans in BIO or one tag a word, with those that it gets.

    Raises InputError when the two differ in length, in all or in a sentence, or there is nothing to
    compare.
    """
    _check_same_length(right, predicted, "sentences")
    for number, (one, two) in enumerate(zip(right, predicted, strict=True), start=1):
        if len(one) != len(two):
            raise InputError(
                f"Sentence {number} has {counted(len(one), 'tag')} and gets {len(two)}."
            )
    pairs = list(zip(chain.from_iterable(right), chain.from_iterable(predicted), strict=True))
    plain = detect_scheme(right) == "plain"
    spans, types = (None, {}) if plain else _compare_spans(right, predicted)
    return TagScores(
        accuracy=100 * sum(one == two for one, two in pairs) / len(pairs), spans=spans, types=types
    )


def _compare_spans(
    right: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[Measures, dict[str, Measures]]:
    """All spans together, and those of each type."""
    tags = set(chain.from_iterable((*right, *predicted))) - {"O"}
    types = sorted({tag[2:] for tag in tags})
    evaluator = Evaluator(list(map(list, right)), list(map(list, predicted)), types, loader="list")
    found = evaluator.evaluate()
    by_type = {type_: _measures(found["entities"][type_]["strict"]) for type_ in types}
    return _measures(found["overall"]["strict"]), by_type


def _measures(found: EvaluationResult) -> Measures:
    return Measures.of(correct=found.correct, found=found.actual, there=found.possible)


def _check_same_length(right: Sequence[object], predicted: Sequence[object], what: str) -> None:
    """Raise InputError unless there is something to compare on both sides."""
    if len(right) != len(predicted):
        raise InputError(
            f"There are {len(right)} {what} and answers for {len(predicted)}; answer n must belong "
            f"to number n of the {what}."
        )
    if not right:
        raise InputError(f"There is nothing to evaluate: no {what} in the input.")
