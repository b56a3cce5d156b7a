"""Scores of spans: counted by hand."""

import random

import pytest

from dragoman.data.schemes import find_spans
from dragoman.errors import InputError
from dragoman.evaluate import tag_scores

TAGS = ("O", "O", "B-A", "I-A", "B-B", "I-B")


def test_a_span_is_right_when_both_ends_and_the_type_are() -> None:
    """One of three spans is found, one is too short, one has another type."""
    right = [["B-A", "I-A", "O", "B-B"], ["B-A", "I-A"]]
    predicted = [["B-A", "I-A", "O", "B-A"], ["B-A", "O"]]
    scores = tag_scores(right, predicted)
    assert scores.spans is not None
    assert scores.spans.f1 == pytest.approx(100 / 3)
    assert scores.types["A"].precision == pytest.approx(100 / 3)
    assert scores.types["A"].recall == pytest.approx(50)
    assert (scores.types["B"].f1, scores.types["B"].count) == (0.0, 1)
    assert scores.accuracy == pytest.approx(100 * 4 / 6)
    assert set(scores.figures) == {"accuracy", "f1", "precision", "recall"}


def test_the_figures_are_those_of_counting() -> None:
    """Sets of spans, intersected: the same precision, recall and F1, malformed answers too."""
    right = [random.choices(TAGS, k=random.randint(1, 9)) for _ in range(60)]
    predicted = [
        [tag if random.random() < 0.8 else random.choice(TAGS) for tag in tags] for tags in right
    ]
    correct = found = there = 0
    for one, two in zip(right, predicted, strict=True):
        ours, theirs = set(find_spans(one)[0]), set(find_spans(two)[0])
        correct, found, there = correct + len(ours & theirs), found + len(theirs), there + len(ours)
    scores = tag_scores(right, predicted).spans
    assert scores is not None
    assert scores.precision == pytest.approx(100 * correct / found)
    assert scores.recall == pytest.approx(100 * correct / there)
    assert scores.f1 == pytest.approx(200 * correct / (found + there))
    assert scores.count == there


def test_tags_of_single_words_have_an_accuracy_alone() -> None:
    """Parts of speech form no spans."""
    scores = tag_scores([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    assert scores.spans is None
    assert scores.figures == {"accuracy": pytest.approx(200 / 3)}


def test_nothing_is_found() -> None:
    """Zero, and no division by it."""
    scores = tag_scores([["B-A"]], [["O"]])
    assert scores.spans is not None
    assert (scores.spans.precision, scores.spans.recall, scores.spans.f1) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("right", "predicted", "words"),
    [
        ([["O"]], [], "1 sentences and answers for 0"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "Sentence 2 has 2 tags and gets 1"),
        ([], [], "nothing to evaluate"),
    ],
)
def test_what_cannot_be_compared(
    right: list[list[str]], predicted: list[list[str]], words: str
) -> None:
    """Two lengths, or nothing: one sentence."""
    with pytest.raises(InputError, match=words):
        tag_scores(right, predicted)
