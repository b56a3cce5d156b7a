"""How many spans of words are found, by nervaluate.

A span is right when its first word, its last word and its type are: the rule of the CoNLL shared
tasks (Tjong Kim Sang and De Meulder, 2003, section 2.2), which nervaluate calls strict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from nervaluate.entities import EvaluationResult
from nervaluate.evaluator import Evaluator

from dragoman.data.schemes import detect_scheme
from dragoman.errors import InputError
from dragoman.evaluate.labels import Measures, check_same_length
from dragoman.plain import Plain
from dragoman.wording import counted

__all__ = ["TagScores", "tag_scores"]


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
    check_same_length(right, predicted, "sentences")
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
